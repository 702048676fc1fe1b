//! `#[derive(Event)]`: from the options of `#[event(..)]` to the impl.
//!
//! Whether the type of the field can be a time is not decided here: the impl asks `TimeField`, which has a sentence
//! of its own for a type that cannot.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{DeriveInput, Error, Generics, Member, Result, Type};

use crate::attrs::{EventOption, MaxFuture, Options, TimeOf, Unit};
use crate::row::{Column, Errors, Row, bounded, dependent, mistaken, nearest, spoken};

/// What the derive puts behind the struct: the impl, or the mistakes and an impl that never runs.
pub(crate) fn expand(input: &DeriveInput) -> TokenStream {
    derive(input).unwrap_or_else(|error| {
        let unreachable = quote!(::core::unreachable!());
        let body = Body { arrival: quote!(_), event_time: unreachable.clone(), watermarks: unreachable };
        mistaken(error, input, |generics| body.implement(input, generics))
    })
}

fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let row = Row::of(input, "Event")?;
    let mut errors = Errors::default();
    let options = Options::read(&row, &mut errors);
    let clock = Clock::read(&row, &options, &mut errors);
    let bounds = Bounds::read(&options, &mut errors);
    errors.finish()?;
    let clock = clock.ok_or_else(|| missing_time(&row))?;

    let types = dependent(&input.generics, &clock.types());
    let generics = bounded(&input.generics, &types, "TimeField");
    Ok(clock.body(&bounds).implement(input, &generics))
}

/// Where the time of a row comes from.
enum Clock<'a> {
    Arrival,
    Field { column: &'a Column<'a>, unit: Unit },
}

/// The options that are spans.
struct Bounds {
    out_of_order: Option<i64>,
    idle: Option<i64>,
    max_future: Option<MaxFuture>,
}

/// What is inside the impl: the name of the parameter, and the two bodies.
struct Body {
    arrival: TokenStream,
    event_time: TokenStream,
    watermarks: TokenStream,
}

impl<'a> Clock<'a> {
    /// None if there is a mistake, which is then among the errors.
    fn read(row: &'a Row<'a>, options: &Options, errors: &mut Errors) -> Option<Clock<'a>> {
        let time = match options.get(EventOption::Time) {
            Some(given) => errors.keep(given.time()),
            None if options.unreadable => None,
            None => errors.keep(Err(missing_time(row))),
        };
        // Read whatever the time is, so that a wrong unit is told in any case.
        let unit = options.get(EventOption::Unit).and_then(|given| errors.keep(given.unit()));
        match time? {
            TimeOf::Arrival(word) => {
                refuse_two_meanings(row, &word, errors);
                refuse_with_arrival(options, errors);
                Some(Clock::Arrival)
            }
            TimeOf::Field(member) => {
                let column = errors.keep(time_column(row, &member))?;
                refuse_unit(column, options, errors);
                Some(Clock::Field { column, unit: unit.unwrap_or(Unit::Millis) })
            }
        }
    }

    /// The types that the impl needs to be times.
    fn types(&self) -> Vec<&'a Type> {
        match self {
            Clock::Arrival => Vec::new(),
            Clock::Field { column, .. } => vec![&column.field.ty],
        }
    }

    fn body(&self, bounds: &Bounds) -> Body {
        let bounds = bounds.calls();
        match self {
            Clock::Arrival => Body {
                arrival: quote!(arrival),
                event_time: quote!(::core::result::Result::Ok(arrival)),
                watermarks: quote!(::flowjoin::Watermarks::ingestion() #bounds),
            },
            Clock::Field { column, unit } => {
                let (member, name, ty) = (&column.member, &column.name, &column.field.ty);
                let unit = match unit {
                    Unit::Seconds => quote!(Seconds),
                    Unit::Millis => quote!(Millis),
                    Unit::Micros => quote!(Micros),
                    Unit::Nanos => quote!(Nanos),
                };
                Body {
                    arrival: quote!(_),
                    event_time: quote! {
                        <#ty as ::flowjoin::TimeField>::to_event_time(&self.#member, ::flowjoin::TimeUnit::#unit)
                            .map_err(|error| error.of_field(#name))
                    },
                    watermarks: quote!(::flowjoin::Watermarks::of_field(#name) #bounds),
                }
            }
        }
    }
}

impl Bounds {
    fn read(options: &Options, errors: &mut Errors) -> Bounds {
        Bounds {
            out_of_order: options.get(EventOption::OutOfOrder).and_then(|given| errors.keep(given.millis())),
            idle: options.get(EventOption::Idle).and_then(|given| errors.keep(given.idle())),
            max_future: options.get(EventOption::MaxFuture).and_then(|given| errors.keep(given.max_future())),
        }
    }

    /// The calls that follow the start of a strategy.
    fn calls(&self) -> TokenStream {
        let span = |millis: i64| quote!(::flowjoin::millis(#millis));
        let out_of_order = self.out_of_order.map(span).map(|span| quote!(.out_of_order(#span)));
        let idle = self.idle.map(span).map(|span| quote!(.idle(#span)));
        let max_future = self.max_future.map(|limit| match limit {
            MaxFuture::Any => quote!(.any_future()),
            MaxFuture::Millis(millis) => {
                let span = span(millis);
                quote!(.max_future(#span))
            }
        });
        quote!(#out_of_order #idle #max_future)
    }
}

impl Body {
    fn implement(&self, input: &DeriveInput, generics: &Generics) -> TokenStream {
        let name = &input.ident;
        let (parameters, arguments, conditions) = generics.split_for_impl();
        let Body { arrival, event_time, watermarks } = self;
        quote! {
            #[automatically_derived]
            impl #parameters ::flowjoin::Event for #name #arguments #conditions {
                fn event_time(
                    &self,
                    #arrival: ::flowjoin::EventTime,
                ) -> ::core::result::Result<::flowjoin::EventTime, ::flowjoin::TimeError> {
                    #event_time
                }

                fn watermarks() -> ::flowjoin::Watermarks {
                    #watermarks
                }
            }
        }
    }
}

fn missing_time(row: &Row<'_>) -> Error {
    let text = format!(
        "`{}` does not say when its rows happened; add `#[event(time = field)]` ({}), or `#[event(time = ingestion)]` if arrival time will do",
        row.name(),
        row.fields_in_words()
    );
    Error::new_spanned(&row.input.ident, text)
}

fn time_column<'a>(row: &'a Row<'a>, member: &Member) -> Result<&'a Column<'a>> {
    let wanted = spoken(member);
    row.column(&wanted).ok_or_else(|| {
        let mut text = format!("`{}` has no field `{wanted}`; {}", row.name(), row.fields_in_words());
        let names = row.columns.iter().map(|column| column.name.as_str());
        if let Some(meant) = nearest(&wanted, names.chain(["ingestion"])) {
            text += &format!("; did you mean `{meant}`?");
        }
        Error::new_spanned(member, text)
    })
}

fn refuse_two_meanings(row: &Row<'_>, word: &Ident, errors: &mut Errors) {
    if row.column("ingestion").is_some() {
        let text = "`ingestion` is the time of arrival, and also a field here; write `r#ingestion` if you mean the field, and rename the field if you do not";
        errors.push(Error::new(word.span(), text));
    }
}

fn refuse_with_arrival(options: &Options, errors: &mut Errors) {
    for (option, why) in [
        (EventOption::Unit, "it says what an integer field counts"),
        (EventOption::OutOfOrder, "arrival is never out of order"),
        (EventOption::MaxFuture, "arrival is never in the future"),
    ] {
        if let Some(given) = options.get(option) {
            let text = format!("`{}` means nothing with `time = ingestion`: {why}", option.name());
            errors.push(Error::new(given.name.span(), text));
        }
    }
}

/// Only what can be seen: behind another name for the type, a unit that means nothing is not found.
fn refuse_unit(column: &Column<'_>, options: &Options, errors: &mut Errors) {
    let Some(given) = options.get(EventOption::Unit) else { return };
    if let Some(ty @ ("EventTime" | "String" | "Timestamp")) = column.type_name().as_deref() {
        let text = format!("`unit` says what an integer counts, and `{}` is of type `{ty}`; leave it out", column.name);
        errors.push(Error::new(given.name.span(), text));
    }
}

#[cfg(test)]
mod tests;
