//! The struct under a derive: its fields by name, the generics of its impl, and the mistakes found in it.
//!
//! Knows nothing of what the attributes mean. Mistakes are collected, so that one build shows all of them.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Field, Generics, Member, Type, parse_quote};

/// The struct that a derive stands on.
pub(crate) struct Row<'a> {
    pub(crate) input: &'a DeriveInput,
    pub(crate) columns: Vec<Column<'a>>,
}

/// A field of the struct, and its name as people say it.
pub(crate) struct Column<'a> {
    pub(crate) member: Member,
    pub(crate) name: String,
    pub(crate) field: &'a Field,
}

/// The mistakes found so far.
#[derive(Default)]
pub(crate) struct Errors(Option<syn::Error>);

impl Errors {
    pub(crate) fn push(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Notes the mistake, if it is one; none then means that it has been told.
    pub(crate) fn keep<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    pub(crate) fn finish(self) -> syn::Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

impl<'a> Row<'a> {
    /// Takes the struct apart; `derived` is the trait, for the message about what is not a struct.
    pub(crate) fn of(input: &'a DeriveInput, derived: &str) -> syn::Result<Row<'a>> {
        let kind = match &input.data {
            Data::Struct(data) => {
                let columns = data.fields.members().zip(&data.fields).map(|(member, field)| Column {
                    name: spoken(&member),
                    member,
                    field,
                });
                owns_its_data(input)?;
                return Ok(Row { input, columns: columns.collect() });
            }
            Data::Enum(_) => "an enum",
            Data::Union(_) => "a union",
        };
        let name = input.ident.unraw();
        let text = format!(
            "`{derived}` is derived for structs, and `{name}` is {kind}; make it a field of a struct, or write `impl {derived} for {name}` by hand"
        );
        Err(syn::Error::new_spanned(&input.ident, text))
    }

    /// The name of the struct without `r#`.
    pub(crate) fn name(&self) -> Ident {
        self.input.ident.unraw()
    }

    /// The field of this name.
    pub(crate) fn column(&self, name: &str) -> Option<&Column<'a>> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// "its fields are a, b, c", for messages that ask for one of them.
    pub(crate) fn fields_in_words(&self) -> String {
        match &self.columns[..] {
            [] => "it has no fields".to_string(),
            [only] => format!("its only field is {}", only.name),
            [.., _] => {
                let names: Vec<_> = self.columns.iter().map(|column| column.name.as_str()).collect();
                format!("its fields are {}", names.join(", "))
            }
        }
    }
}

impl Column<'_> {
    /// The attributes of this name on the field.
    pub(crate) fn marks(&self, name: &str) -> impl Iterator<Item = &Attribute> {
        marks(&self.field.attrs, name)
    }

    /// The last name of the field's type, when it has one: `EventTime` of `flowjoin::EventTime`.
    pub(crate) fn type_name(&self) -> Option<String> {
        let mut ty = &self.field.ty;
        // A type that came through a `macro_rules` fragment is wrapped in an invisible group.
        while let Type::Group(syn::TypeGroup { elem, .. }) | Type::Paren(syn::TypeParen { elem, .. }) = ty {
            ty = elem;
        }
        match ty {
            Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.unraw().to_string()),
            _ => None,
        }
    }
}

/// The attributes of this name among `attributes`.
pub(crate) fn marks<'a>(attributes: &'a [Attribute], name: &str) -> impl Iterator<Item = &'a Attribute> {
    attributes.iter().filter(move |attribute| attribute.path().is_ident(name))
}

fn owns_its_data(input: &DeriveInput) -> syn::Result<()> {
    match input.generics.lifetimes().next() {
        None => Ok(()),
        Some(borrow) => {
            let text = "a row owns its data, since it is kept and sent: use `String` for `&str`, `Vec<T>` for `&[T]`";
            Err(syn::Error::new_spanned(&borrow.lifetime, text))
        }
    }
}

/// How people say the name of a field: without `r#`, or as a number.
pub(crate) fn spoken(member: &Member) -> String {
    match member {
        Member::Named(name) => name.unraw().to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    }
}

/// The generics of an impl in which each of `types` is a `promise`; every type parameter must be a row itself, for
/// the struct to be one.
pub(crate) fn bounded(generics: &Generics, types: &[&Type], promise: &str) -> Generics {
    let mut bounded = generics.clone();
    for parameter in bounded.type_params_mut() {
        parameter.bounds.push(parse_quote!(::flowjoin::Data));
    }
    for ty in types {
        // The place of the type, so that what is wrong with it is told there.
        let promise = Ident::new(promise, ty.span());
        let promise = quote_spanned!(ty.span()=> ::flowjoin::#promise);
        bounded.make_where_clause().predicates.push(parse_quote!(#ty: #promise));
    }
    bounded
}

/// Those of the types that depend on a type parameter. What the others are is known where the struct is declared.
pub(crate) fn dependent<'t>(generics: &Generics, types: &[&'t Type]) -> Vec<&'t Type> {
    let depends = |ty: &Type| generics.type_params().any(|parameter| mentions(ty.to_token_stream(), &parameter.ident));
    types.iter().copied().filter(|ty| depends(ty)).collect()
}

/// The mistakes, and behind them an impl that never runs: without one, every use of the struct would be told to
/// derive what it does derive.
pub(crate) fn mistaken(error: syn::Error, input: &DeriveInput, stub: impl Fn(&Generics) -> TokenStream) -> TokenStream {
    let errors = error.into_compile_error();
    // These two can be no row, so that an impl would only add to what is told.
    if matches!(input.data, Data::Union(_)) || input.generics.lifetimes().next().is_some() {
        return errors;
    }
    let stub = stub(&bounded(&input.generics, &[], "Data"));
    quote!(#errors #stub)
}

fn mentions(tokens: TokenStream, name: &Ident) -> bool {
    tokens.into_iter().any(|tree| match tree {
        TokenTree::Ident(ident) => ident == *name,
        TokenTree::Group(group) => mentions(group.stream(), name),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

/// The choice that was probably meant: at most a third of its letters wrong, a swap of two counted once.
pub(crate) fn nearest<'c>(wrong: &str, choices: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let wrong: Vec<char> = wrong.to_lowercase().chars().collect();
    let (_, choice) = choices
        .filter_map(|choice| {
            let letters: Vec<char> = choice.to_lowercase().chars().collect();
            let shorter = wrong.len().min(letters.len());
            let distance = distance(&wrong, &letters);
            (distance < shorter && distance <= 1.max(shorter / 3)).then_some((distance, choice))
        })
        .min_by_key(|(distance, _)| *distance)?;
    Some(choice)
}

/// How many letters to put in, take out, change or swap with the next one.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
pub(crate) mod testing {
    /// Fails unless the derive says exactly this about the struct.
    pub(crate) fn check_mistakes(
        derive: fn(&syn::DeriveInput) -> syn::Result<proc_macro2::TokenStream>,
        code: &str,
        expected: &[&str],
    ) {
        let told = match derive(&syn::parse_str(code).unwrap()) {
            Ok(_) => Vec::new(),
            Err(error) => error.into_iter().map(|one| one.to_string()).collect(),
        };
        assert_eq!(told, expected, "{code}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_choice_is_found_and_a_far_one_is_not() {
        let options = ["time", "unit", "out_of_order", "idle", "max_future"];
        let nearest = |wrong| nearest(wrong, options.into_iter());
        for (wrong, meant) in [
            ("tiem", "time"),
            ("Time", "time"),
            ("units", "unit"),
            ("outOfOrder", "out_of_order"),
            ("out_of_oder", "out_of_order"),
            ("idel", "idle"),
            ("max_futur", "max_future"),
        ] {
            assert_eq!(nearest(wrong), Some(meant), "{wrong}");
        }
        for wrong in ["foo", "", "t", "lateness", "späte_Zeilen"] {
            assert_eq!(nearest(wrong), None, "{wrong}");
        }
        assert_eq!(super::nearest("a", ["b"].into_iter()), None);
    }

    #[test]
    fn a_type_is_known_to_depend_on_a_parameter_however_deep() {
        let name: Ident = parse_quote!(T);
        let mentions = |ty: Type| mentions(ty.to_token_stream(), &name);
        assert!(mentions(parse_quote!(T)));
        assert!(mentions(parse_quote!((u8, Option<[T; 2]>))));
        assert!(!mentions(parse_quote!(Option<Text>)));
    }
}
