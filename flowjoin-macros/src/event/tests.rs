//! What `#[derive(Event)]` makes of a struct, and what it says about a wrong one.

use super::*;
use crate::row::testing::check_mistakes;
use syn::parse_quote;

fn check(input: &DeriveInput, expected: &TokenStream) {
    assert_eq!(expand(input).to_string(), expected.to_string());
}

/// The part of the expansion after the last time that this stands in it.
fn after(mark: &str, input: &DeriveInput) -> String {
    let code = derive(input).unwrap().to_string();
    code.rsplit(mark).next().unwrap().trim_end_matches([' ', '}']).to_string()
}

/// The strategy that these options make of a struct with fields of many types.
fn strategy(options: &TokenStream) -> String {
    let code = parse_quote! {
        #[event(#options)]
        struct Order { id: u64, at: EventTime, seconds: i64, r#type: String }
    };
    after("Watermarks {", &code).trim().to_string()
}

#[test]
fn the_impl_reads_the_field_and_tells_the_strategy() {
    check(
        &parse_quote! {
            #[event(time = placed_at, out_of_order = "5s", idle = "1m", max_future = "1h 30m")]
            struct Order { id: u64, placed_at: EventTime }
        },
        &quote! {
            #[automatically_derived]
            impl ::flowjoin::Event for Order {
                fn event_time(
                    &self,
                    _: ::flowjoin::EventTime,
                ) -> ::core::result::Result<::flowjoin::EventTime, ::flowjoin::TimeError> {
                    <EventTime as ::flowjoin::TimeField>::to_event_time(
                        &self.placed_at,
                        ::flowjoin::TimeUnit::Millis
                    )
                    .map_err(|error| error.of_field("placed_at"))
                }

                fn watermarks() -> ::flowjoin::Watermarks {
                    ::flowjoin::Watermarks::of_field("placed_at")
                        .out_of_order(::flowjoin::millis(5000i64))
                        .idle(::flowjoin::millis(60000i64))
                        .max_future(::flowjoin::millis(5400000i64))
                }
            }
        },
    );
}

#[test]
fn the_time_of_arrival_is_passed_on() {
    check(
        &parse_quote! {
            #[event(time = ingestion, idle = "1m")]
            struct Tick;
        },
        &quote! {
            #[automatically_derived]
            impl ::flowjoin::Event for Tick {
                fn event_time(
                    &self,
                    arrival: ::flowjoin::EventTime,
                ) -> ::core::result::Result<::flowjoin::EventTime, ::flowjoin::TimeError> {
                    ::core::result::Result::Ok(arrival)
                }

                fn watermarks() -> ::flowjoin::Watermarks {
                    ::flowjoin::Watermarks::ingestion().idle(::flowjoin::millis(60000i64))
                }
            }
        },
    );
}

#[test]
fn an_option_that_is_left_out_is_left_to_the_core() {
    assert_eq!(strategy(&quote!(time = at)), quote!(::flowjoin::Watermarks::of_field("at")).to_string());
    assert_eq!(
        strategy(&quote!(max_future = "none", time = at,)),
        quote!(::flowjoin::Watermarks::of_field("at").any_future()).to_string()
    );
}

#[test]
fn a_raw_name_is_told_without_its_mark_however_it_is_written() {
    let expected = quote!(::flowjoin::Watermarks::of_field("type")).to_string();
    assert_eq!(strategy(&quote!(time = r#type)), expected);
    assert_eq!(strategy(&quote!(time = type)), expected);
}

#[test]
fn a_raw_ingestion_is_the_field_of_that_name() {
    let code = parse_quote! {
        #[event(time = r#ingestion)]
        struct Order { ingestion: i64 }
    };
    assert_eq!(after("Watermarks {", &code).trim(), quote!(::flowjoin::Watermarks::of_field("ingestion")).to_string());
}

#[test]
fn an_integer_is_read_in_its_unit() {
    for (unit, variant) in [("s", "Seconds"), ("ms", "Millis"), ("us", "Micros"), ("ns", "Nanos")] {
        let code = parse_quote! {
            #[event(time = 1, unit = #unit)]
            struct Order(u64, i64);
        };
        let code = derive(&code).unwrap().to_string();
        let variant = Ident::new(variant, proc_macro2::Span::call_site());
        let call = quote!(to_event_time(&self.1, ::flowjoin::TimeUnit::#variant));
        assert!(code.contains(&call.to_string()), "{code}");
    }
}

#[test]
fn two_attributes_are_read_as_one() {
    let code = parse_quote! {
        #[event(time = at)]
        #[event(idle = "1m")]
        struct Order { at: EventTime }
    };
    let one = quote!(::flowjoin::Watermarks::of_field("at").idle(::flowjoin::millis(60000i64)));
    assert_eq!(after("Watermarks {", &code).trim(), one.to_string());
}

#[test]
fn type_parameters_are_rows_and_a_time_of_such_a_type_is_a_time() {
    let code = parse_quote! {
        #[event(time = at)]
        struct Reading<T: Copy, A, const N: usize = 3> where T: Ord { value: T, at: A }
    };
    let header = quote! {
        impl<T: Copy + ::flowjoin::Data, A: ::flowjoin::Data, const N: usize> ::flowjoin::Event for Reading<T, A, N>
        where T: Ord, A: ::flowjoin::TimeField
    };
    let code = derive(&code).unwrap().to_string();
    assert!(code.contains(&header.to_string()), "{code}");
}

#[test]
fn a_missing_time_names_the_choices() {
    let text = |fields| {
        format!(
            "`Order` does not say when its rows happened; add `#[event(time = field)]` ({fields}), or `#[event(time = ingestion)]` if arrival time will do"
        )
    };
    for (code, fields) in [
        ("struct Order { id: u64, r#type: u8 }", "its fields are id, type"),
        ("#[event()] struct Order(u64);", "its only field is 0"),
        ("#[event(idle = \"1m\")] struct Order;", "it has no fields"),
    ] {
        check_mistakes(derive, code, &[&text(fields)]);
    }
}

#[test]
fn every_mistake_in_an_option_is_told_with_its_remedy() {
    let unknown = "; the options are time, unit, out_of_order, idle, max_future";
    let span = "is not a span of time; write a number and a unit (ms, s, m, h, d), as in `5s` or `1m 30s`";
    for (options, told) in [
        ("time = at, foo = 1", format!("unknown option `foo`{unknown}")),
        ("time = at, max_futur = \"1h\"", format!("unknown option `max_futur`{unknown}; did you mean `max_future`?")),
        ("tiem = at", format!("unknown option `tiem`{unknown}; did you mean `time`?")),
        ("time = at, tiem = id", format!("unknown option `tiem`{unknown}; did you mean `time`?")),
        (
            "time = at, \"idle\"",
            "expected an option, as in `time = field`; the options are time, unit, out_of_order, idle, max_future"
                .to_string(),
        ),
        ("time = at, idle = \"1m\", idle = \"1m\"", "`idle` is given twice".to_string()),
        ("time = at, idle", "`idle` needs a value, as in `idle = \"1m\"`".to_string()),
        ("time = at, idle = ", "`idle` needs a value, as in `idle = \"1m\"`".to_string()),
        ("time = at, idle(\"1m\")", "`idle` needs a value, as in `idle = \"1m\"`".to_string()),
        ("time = at idle = \"1m\"", "a comma is missing before `idle`".to_string()),
        ("time = at, idle = 5s", "`idle` takes text in quotes, as in `idle = \"1m\"`".to_string()),
        ("time = at, idle = \"0s\"", "`idle` cannot be zero; leave it out for a source that is never idle".to_string()),
        ("time = at, idle = \"5 s\"", format!("`5 s` {span}")),
        (
            "time = at, out_of_order = \"-5s\"",
            "`out_of_order` cannot be negative; write it as in `out_of_order = \"5s\"`".to_string(),
        ),
        ("time = at, max_future = \"soon\"", format!("`soon` {span}, or `none` if there is no limit")),
        ("time = placed", "`Order` has no field `placed`; its fields are id, at, text".to_string()),
        ("time = att", "`Order` has no field `att`; its fields are id, at, text; did you mean `at`?".to_string()),
        ("time = ingest", "`Order` has no field `ingest`; its fields are id, at, text".to_string()),
        (
            "time = ingestoin",
            "`Order` has no field `ingestoin`; its fields are id, at, text; did you mean `ingestion`?".to_string(),
        ),
        ("time = 0", "`Order` has no field `0`; its fields are id, at, text".to_string()),
        ("time", "`time` needs a value, as in `time = field`".to_string()),
        ("time = \"at\"", "`time` takes a field without quotes: `time = at`".to_string()),
        ("time = at.seconds", "`time` takes a field of the struct itself, or `ingestion`".to_string()),
        ("time = id, unit = \"seconds\"", "unknown unit `seconds`; the units are s, ms, us, ns".to_string()),
        ("time = id, unit = ms", "`unit` takes text in quotes, as in `unit = \"ms\"`".to_string()),
        (
            "time = at, unit = \"ms\"",
            "`unit` says what an integer counts, and `at` is of type `EventTime`; leave it out".to_string(),
        ),
        (
            "time = text, unit = \"ms\"",
            "`unit` says what an integer counts, and `text` is of type `String`; leave it out".to_string(),
        ),
        (
            "time = ingestion, unit = \"s\"",
            "`unit` means nothing with `time = ingestion`: it says what an integer field counts".to_string(),
        ),
        (
            "time = ingestion, out_of_order = \"5s\"",
            "`out_of_order` means nothing with `time = ingestion`: arrival is never out of order".to_string(),
        ),
        (
            "time = ingestion, max_future = \"1h\"",
            "`max_future` means nothing with `time = ingestion`: arrival is never in the future".to_string(),
        ),
    ] {
        let code = format!("#[event({options})] struct Order {{ id: u64, at: flowjoin::EventTime, text: String }}");
        check_mistakes(derive, &code, &[&told]);
    }
}

#[test]
fn an_attribute_of_the_wrong_form_or_in_the_wrong_place_is_told_once() {
    let form = "`#[event]` takes its options in parentheses, as in `#[event(time = field)]`";
    check_mistakes(derive, "#[event] struct Order { at: i64 }", &[form]);
    check_mistakes(derive, "#[event = \"at\"] struct Order { at: i64 }", &[form]);
    let place = "`#[event(..)]` belongs on the struct, as in `#[event(time = at)]`";
    check_mistakes(derive, "struct Order { #[event(time)] at: i64 }", &[place]);
}

#[test]
fn a_field_named_ingestion_makes_the_word_ambiguous() {
    let told = "`ingestion` is the time of arrival, and also a field here; write `r#ingestion` if you mean the field, and rename the field if you do not";
    check_mistakes(derive, "#[event(time = ingestion)] struct Order { ingestion: i64 }", &[told]);
}

#[test]
fn all_the_mistakes_of_a_struct_are_told_at_once() {
    check_mistakes(
        derive,
        "#[event(foo = 1, time = a, unit = \"h\")] #[event(unit = \"s\", idle = \"x\", out_of_order = 5)] struct Order { b: i64 }",
        &[
            "unknown option `foo`; the options are time, unit, out_of_order, idle, max_future",
            "`unit` is given twice",
            "unknown unit `h`; the units are s, ms, us, ns",
            "`Order` has no field `a`; its only field is b",
            "`out_of_order` takes text in quotes, as in `out_of_order = \"5s\"`",
            "`x` is not a span of time; write a number and a unit (ms, s, m, h, d), as in `5s` or `1m 30s`",
        ],
    );
}

#[test]
fn a_mistake_leaves_an_impl_so_that_the_uses_of_the_struct_are_quiet() {
    let code: TokenStream = expand(&parse_quote!(
        struct Order<T> {
            at: T,
        }
    ));
    let stub = quote!(impl<T: ::flowjoin::Data> ::flowjoin::Event for Order<T>).to_string();
    assert!(code.to_string().contains(&stub), "{code}");
    let code: syn::File = syn::parse2(code).unwrap();
    assert_eq!(code.items.len(), 2);
}

#[test]
fn only_a_struct_that_owns_its_data_is_an_event() {
    let told = "`Event` is derived for structs, and `Kind` is an enum; make it a field of a struct, or write `impl Event for Kind` by hand";
    check_mistakes(derive, "enum Kind { A }", &[told]);
    check_mistakes(derive, "union Kind { a: u8 }", &[&told.replace("an enum", "a union")]);
    let told = "a row owns its data, since it is kept and sent: use `String` for `&str`, `Vec<T>` for `&[T]`";
    check_mistakes(derive, "#[event(time = at)] struct Order<'a> { at: i64, text: &'a str }", &[told]);
}
