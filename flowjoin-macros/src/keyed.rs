//! `#[derive(Keyed)]`: from the fields that are marked `#[key]` to the impl.
//!
//! Whether the type of a field can be a key is not decided here: the impl asks `Key`, which has a sentence of its
//! own for a type that cannot.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Error, Generics, Meta, Result, Type};

use crate::row::{Column, Errors, Row, bounded, dependent, marks, mistaken};

/// What the derive puts behind the struct: the impl, or the mistakes and an impl that never runs.
pub(crate) fn expand(input: &DeriveInput) -> TokenStream {
    derive(input).unwrap_or_else(|error| {
        let value = quote!(::core::unreachable!());
        mistaken(error, input, |generics| implement(input, generics, "", (&quote!(()), &value)))
    })
}

fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let row = Row::of(input, "Keyed")?;
    let mut errors = Errors::default();
    let columns = key_columns(&row, &mut errors);
    errors.finish()?;

    let types: Vec<&Type> = columns.iter().map(|column| &column.field.ty).collect();
    let values = columns.iter().map(|column| {
        let (member, ty) = (&column.member, &column.field.ty);
        quote!(<#ty as ::core::clone::Clone>::clone(&self.#member))
    });
    let (key, value, promised) = match &types[..] {
        [only] => (quote!(#only), quote!(#(#values)*), dependent(&input.generics, &types)),
        // Asked for one by one, so that the compiler points at the field that is no key rather than at the derive.
        _ => (quote!((#(#types),*)), quote!((#(#values),*)), types.clone()),
    };
    let generics = bounded(&input.generics, &promised, "Key");
    Ok(implement(input, &generics, &in_words(&columns), (&key, &value)))
}

// What explain says: `order_id`, or `(store, product_id)`.
fn in_words(columns: &[&Column<'_>]) -> String {
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    if names.len() == 1 { names.concat() } else { format!("({})", names.join(", ")) }
}

fn implement(
    input: &DeriveInput,
    generics: &Generics,
    words: &str,
    (key, value): (&TokenStream, &TokenStream),
) -> TokenStream {
    let name = &input.ident;
    let (parameters, arguments, conditions) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #parameters ::flowjoin::Keyed for #name #arguments #conditions {
            type Key = #key;

            fn key(&self) -> #key {
                #value
            }

            fn key_name() -> &'static str {
                #words
            }
        }
    }
}

/// The marked fields, in the order in which they are declared.
fn key_columns<'a>(row: &'a Row<'a>, errors: &mut Errors) -> Vec<&'a Column<'a>> {
    let mut columns = Vec::new();
    for column in &row.columns {
        let mut keys = column.marks("key").peekable();
        if keys.peek().is_some() {
            columns.push(column);
        }
        for (position, mark) in keys.enumerate() {
            if !matches!(mark.meta, Meta::Path(_)) {
                let text = "`#[key]` takes no arguments; for a key of several fields, mark each of them `#[key]`";
                errors.push(Error::new_spanned(&mark.meta, text));
            } else if position > 0 {
                errors.push(Error::new_spanned(mark, format!("`{}` is marked `#[key]` twice", column.name)));
            }
        }
    }
    if let Some(mark) = columns.get(KEY_FIELDS_MAX).and_then(|column| column.marks("key").next()) {
        let text = format!(
            "a key has at most {KEY_FIELDS_MAX} fields, and {} of `{}` are marked `#[key]`",
            columns.len(),
            row.name()
        );
        errors.push(Error::new_spanned(mark, text));
    }
    refuse_on_struct(row, &columns, errors);
    columns
}

fn refuse_on_struct(row: &Row<'_>, columns: &[&Column<'_>], errors: &mut Errors) {
    let mut misplaced = marks(&row.input.attrs, "key").peekable();
    if columns.is_empty() && misplaced.peek().is_none() {
        let text = format!(
            "no field is marked `#[key]`; mark the field (or fields) that tell the rows of `{}` apart: {}",
            row.name(),
            row.fields_in_words()
        );
        errors.push(Error::new_spanned(&row.input.ident, text));
    }
    for mark in misplaced {
        let text = format!("`#[key]` belongs on a field of `{}`: {}", row.name(), row.fields_in_words());
        errors.push(Error::new_spanned(mark, text));
    }
}

/// The longest tuple that is a key.
const KEY_FIELDS_MAX: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::testing::check_mistakes;
    use syn::parse_quote;

    fn check(input: &DeriveInput, expected: &TokenStream) {
        assert_eq!(expand(input).to_string(), expected.to_string());
    }

    #[test]
    fn the_key_is_a_copy_of_the_field() {
        check(
            &parse_quote!(
                struct Order {
                    #[key]
                    r#type: u64,
                    amount: i64,
                }
            ),
            &quote! {
                #[automatically_derived]
                impl ::flowjoin::Keyed for Order {
                    type Key = u64;

                    fn key(&self) -> u64 {
                        <u64 as ::core::clone::Clone>::clone(&self.r#type)
                    }

                    fn key_name() -> &'static str {
                        "type"
                    }
                }
            },
        );
    }

    #[test]
    fn several_keys_are_a_tuple_in_the_order_of_declaration() {
        check(
            &parse_quote!(
                struct Stock(#[key] String, i64, #[key] Option<u64>);
            ),
            &quote! {
                #[automatically_derived]
                impl ::flowjoin::Keyed for Stock
                where
                    String: ::flowjoin::Key,
                    Option<u64>: ::flowjoin::Key
                {
                    type Key = (String, Option<u64>);

                    fn key(&self) -> (String, Option<u64>) {
                        (
                            <String as ::core::clone::Clone>::clone(&self.0),
                            <Option<u64> as ::core::clone::Clone>::clone(&self.2)
                        )
                    }

                    fn key_name() -> &'static str {
                        "(0, 2)"
                    }
                }
            },
        );
    }

    #[test]
    fn type_parameters_are_rows_and_a_key_of_such_a_type_is_a_key() {
        let code = parse_quote!(
            struct Pair<K, T>
            where
                T: Copy,
            {
                #[key]
                key: K,
                value: T,
            }
        );
        let header = quote! {
            impl<K: ::flowjoin::Data, T: ::flowjoin::Data> ::flowjoin::Keyed for Pair<K, T>
            where T: Copy, K: ::flowjoin::Key
        };
        let code = derive(&code).unwrap().to_string();
        assert!(code.contains(&header.to_string()), "{code}");
    }

    #[test]
    fn a_missing_key_names_the_fields() {
        for (code, fields) in [
            ("struct Order { id: u64, r#type: u8 }", "its fields are id, type"),
            ("struct Order(u64);", "its only field is 0"),
            ("struct Order;", "it has no fields"),
        ] {
            let told = format!(
                "no field is marked `#[key]`; mark the field (or fields) that tell the rows of `Order` apart: {fields}"
            );
            check_mistakes(derive, code, &[&told]);
        }
    }

    #[test]
    fn all_the_mistakes_of_a_struct_are_told_at_once() {
        let arguments = "`#[key]` takes no arguments; for a key of several fields, mark each of them `#[key]`";
        check_mistakes(
            derive,
            "#[key] struct Order { #[key(name)] a: u8, #[key] #[key] b: u8, #[key = \"c\"] c: u8 }",
            &[
                arguments,
                "`b` is marked `#[key]` twice",
                arguments,
                "`#[key]` belongs on a field of `Order`: its fields are a, b, c",
            ],
        );
        let told = "`#[key]` belongs on a field of `Order`: its only field is a";
        check_mistakes(derive, "#[key] struct Order { a: u8 }", &[told]);
    }

    #[test]
    fn a_key_has_at_most_six_fields() {
        let with = |count| format!("struct Order({});", "#[key] u8,".repeat(count));
        check_mistakes(derive, &with(6), &[]);
        check_mistakes(derive, &with(8), &["a key has at most 6 fields, and 8 of `Order` are marked `#[key]`"]);
    }

    #[test]
    fn a_mistake_leaves_an_impl_so_that_the_uses_of_the_struct_are_quiet() {
        let code: TokenStream = expand(&parse_quote!(
            struct Order {
                id: u64,
            }
        ));
        let stub = quote!(
            type Key = ();
        )
        .to_string();
        assert!(code.to_string().contains(&stub), "{code}");
        let code: syn::File = syn::parse2(code).unwrap();
        assert_eq!(code.items.len(), 2);
    }

    #[test]
    fn only_a_struct_has_a_key() {
        let told = "`Keyed` is derived for structs, and `Kind` is an enum; make it a field of a struct, or write `impl Keyed for Kind` by hand";
        check_mistakes(derive, "enum Kind { A }", &[told]);
    }
}
