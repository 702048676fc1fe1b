//! What stands in `#[event(..)]`: the options as they are written, and the values they can have.
//!
//! Reads tokens only; what the options mean together, and whether a field exists, is decided in `event`. The list
//! is cut at its commas before anything is read, so that a mistake in one option does not hide those in others.

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::Parser;
use syn::{Attribute, Error, Index, LitStr, Member, Meta, Result};

use crate::row::{Errors, Row, marks, nearest};

/// The options of `#[event(..)]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EventOption {
    Time,
    Unit,
    OutOfOrder,
    Idle,
    MaxFuture,
}

/// An option as it was written.
pub(crate) struct Given {
    pub(crate) option: EventOption,
    /// The name, with the place of the option.
    pub(crate) name: Ident,
    value: TokenStream,
}

/// All that was written; an option stands in it at most once.
#[derive(Default)]
pub(crate) struct Options {
    given: Vec<Given>,
    /// An attribute was no list of options, or stood on a field: then nothing can be said to be missing.
    pub(crate) unreadable: bool,
}

/// What `time = ..` says.
pub(crate) enum TimeOf {
    Arrival(Ident),
    Field(Member),
}

/// What `max_future = ..` says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MaxFuture {
    Millis(i64),
    Any,
}

/// What `unit = ..` says: the variants of `TimeUnit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    Seconds,
    Millis,
    Micros,
    Nanos,
}

impl EventOption {
    const ALL: [EventOption; 5] =
        [EventOption::Time, EventOption::Unit, EventOption::OutOfOrder, EventOption::Idle, EventOption::MaxFuture];

    pub(crate) fn name(self) -> &'static str {
        match self {
            EventOption::Time => "time",
            EventOption::Unit => "unit",
            EventOption::OutOfOrder => "out_of_order",
            EventOption::Idle => "idle",
            EventOption::MaxFuture => "max_future",
        }
    }

    /// The option as one would write it.
    fn example(self) -> &'static str {
        match self {
            EventOption::Time => "time = field",
            EventOption::Unit => "unit = \"ms\"",
            EventOption::OutOfOrder => "out_of_order = \"5s\"",
            EventOption::Idle => "idle = \"1m\"",
            EventOption::MaxFuture => "max_future = \"24h\"",
        }
    }
}

impl Options {
    /// Reads all the `#[event(..)]` of a struct as if they were one.
    pub(crate) fn read(row: &Row<'_>, errors: &mut Errors) -> Options {
        let mut options = Options::default();
        for (column, attribute) in
            row.columns.iter().flat_map(|column| column.marks("event").map(move |mark| (column, mark)))
        {
            options.unreadable = true;
            let text = format!("`#[event(..)]` belongs on the struct, as in `#[event(time = {})]`", column.name);
            errors.push(Error::new_spanned(&attribute.meta, text));
        }
        for attribute in marks(&row.input.attrs, "event") {
            match &attribute.meta {
                Meta::List(list) => {
                    for piece in between_commas(list.tokens.clone()) {
                        options.add(piece, errors);
                    }
                }
                Meta::Path(_) | Meta::NameValue(_) => {
                    options.unreadable = true;
                    errors.push(no_list(attribute));
                }
            }
        }
        options
    }

    /// The option, if it was written.
    pub(crate) fn get(&self, option: EventOption) -> Option<&Given> {
        self.given.iter().find(|given| given.option == option)
    }

    fn add(&mut self, piece: TokenStream, errors: &mut Errors) {
        let mut tokens = piece.clone().into_iter();
        let Some(TokenTree::Ident(name)) = tokens.next() else {
            let text = format!("expected an option, as in `time = field`; the options are {}", option_names());
            return errors.push(Error::new_spanned(piece, text));
        };
        let spoken = name.unraw().to_string();
        let exact = EventOption::ALL.into_iter().find(|option| option.name() == spoken);
        let Some(option) = exact.or_else(|| unknown(&name, &spoken, errors)) else { return };
        if self.get(option).is_some() {
            // A misspelt name has been told already.
            if exact.is_some() {
                errors.push(Error::new(name.span(), format!("`{}` is given twice", option.name())));
            }
            return;
        }
        let value = match tokens.next() {
            Some(TokenTree::Punct(punct)) if punct.as_char() == '=' => tokens.collect(),
            _ => TokenStream::new(),
        };
        self.given.push(Given { option, name, value });
    }
}

/// Tells that there is no such option, and goes on with the one that was probably meant.
fn unknown(name: &Ident, spoken: &str, errors: &mut Errors) -> Option<EventOption> {
    let meant = nearest(spoken, EventOption::ALL.into_iter().map(EventOption::name));
    let mut text = format!("unknown option `{spoken}`; the options are {}", option_names());
    if let Some(meant) = meant {
        text += &format!("; did you mean `{meant}`?");
    }
    errors.push(Error::new(name.span(), text));
    EventOption::ALL.into_iter().find(|option| Some(option.name()) == meant)
}

fn option_names() -> String {
    EventOption::ALL.map(EventOption::name).join(", ")
}

fn no_list(attribute: &Attribute) -> Error {
    let text = "`#[event]` takes its options in parentheses, as in `#[event(time = field)]`";
    Error::new_spanned(&attribute.meta, text)
}

fn between_commas(tokens: TokenStream) -> Vec<TokenStream> {
    let mut pieces = vec![TokenStream::new()];
    for tree in tokens {
        match (&tree, pieces.last_mut()) {
            (TokenTree::Punct(punct), _) if punct.as_char() == ',' => pieces.push(TokenStream::new()),
            (_, Some(piece)) => piece.extend([tree]),
            (_, None) => pieces.push(tree.into()),
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

impl Given {
    /// The field that holds the time, or the time of arrival.
    pub(crate) fn time(&self) -> Result<TimeOf> {
        let value = self.value()?;
        if let Ok(index) = syn::parse2::<Index>(value.clone()) {
            return Ok(TimeOf::Field(Member::Unnamed(index)));
        }
        // Any word: a field may be named `r#type`, and the keyword without its mark can mean nothing else.
        if let Ok(name) = Ident::parse_any.parse2(value.clone()) {
            let arrival = name == "ingestion";
            return Ok(if arrival { TimeOf::Arrival(name) } else { TimeOf::Field(Member::Named(name)) });
        }
        let text = match syn::parse2::<LitStr>(value.clone()) {
            Ok(quoted) => format!("`time` takes a field without quotes: `time = {}`", quoted.value()),
            Err(_) => "`time` takes a field of the struct itself, or `ingestion`".to_string(),
        };
        Err(Error::new_spanned(value, text))
    }

    /// The unit of an integer.
    pub(crate) fn unit(&self) -> Result<Unit> {
        let text = self.text()?;
        match text.value().as_str() {
            "s" => Ok(Unit::Seconds),
            "ms" => Ok(Unit::Millis),
            "us" => Ok(Unit::Micros),
            "ns" => Ok(Unit::Nanos),
            wrong => Err(Error::new_spanned(&text, format!("unknown unit `{wrong}`; the units are s, ms, us, ns"))),
        }
    }

    /// A span that is not negative, in milliseconds.
    pub(crate) fn millis(&self) -> Result<i64> {
        let text = self.text()?;
        span_millis(&text.value(), self.option).map_err(|message| Error::new_spanned(&text, message))
    }

    /// A time after which something is idle: zero would make it idle between any two rows.
    pub(crate) fn idle(&self) -> Result<i64> {
        match self.millis()? {
            0 => Err(Error::new_spanned(
                &self.value,
                "`idle` cannot be zero; leave it out for a source that is never idle",
            )),
            millis => Ok(millis),
        }
    }

    /// How far ahead of the clock a row may be.
    pub(crate) fn max_future(&self) -> Result<MaxFuture> {
        if self.text()?.value().trim() == "none" {
            return Ok(MaxFuture::Any);
        }
        self.millis().map(MaxFuture::Millis)
    }

    fn text(&self) -> Result<LitStr> {
        let value = self.value()?;
        let text = || format!("`{}` takes text in quotes, as in `{}`", self.option.name(), self.option.example());
        syn::parse2(value.clone()).map_err(|_| Error::new_spanned(value, text()))
    }

    fn value(&self) -> Result<&TokenStream> {
        let mut tokens = self.value.clone().into_iter();
        match (tokens.next(), tokens.next()) {
            (None, _) => {
                let text = format!("`{}` needs a value, as in `{}`", self.option.name(), self.option.example());
                Err(Error::new(self.name.span(), text))
            }
            // Every value is one token, so a word after it is the next option.
            (_, Some(TokenTree::Ident(next))) => {
                Err(Error::new(next.span(), format!("a comma is missing before `{next}`")))
            }
            _ => Ok(&self.value),
        }
    }
}

/// Reads a span as `Span::parse` does, but for a minus sign, which no option can have.
fn span_millis(text: &str, option: EventOption) -> std::result::Result<i64, String> {
    let body = text.trim();
    if body.starts_with('-') {
        return Err(format!("`{}` cannot be negative; write it as in `{}`", option.name(), option.example()));
    }
    read_span(body).ok_or_else(|| {
        let mut message = format!(
            "`{text}` is not a span of time; write a number and a unit (ms, s, m, h, d), as in `5s` or `1m 30s`"
        );
        if option == EventOption::MaxFuture {
            message += ", or `none` if there is no limit";
        }
        message
    })
}

fn read_span(body: &str) -> Option<i64> {
    let mut total: i64 = 0;
    let mut rest = body;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (number, tail) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (unit, tail) = tail.split_at(tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len()));
        let part = number.parse::<i64>().ok()?.checked_mul(unit_millis(unit)?)?;
        total = total.checked_add(part)?;
        rest = tail.trim_start();
    }
    Some(total)
}

fn unit_millis(unit: &str) -> Option<i64> {
    match unit {
        "ms" => Some(1),
        "s" => Some(1_000),
        "m" | "min" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_the_core_reads_them() {
        for text in [
            "5s",
            "1m 30s",
            "1m30s",
            "250ms",
            "7d",
            "24h",
            "3min",
            " 5s ",
            "0s",
            "1d 2h 3m 4s 5ms",
            "106751991167d",
            "9223372036854775807ms",
            "9223372036854775807ms 1ms",
            "",
            " ",
            "5",
            "s",
            "5 s",
            "5 parsecs",
            "1.5s",
            "5S",
            "9223372036854775807d",
            "5s,",
            "5s 3",
            "+5s",
            "٥s",
        ] {
            let core = flowjoin_core::Span::parse(text).ok().map(flowjoin_core::Span::as_millis);
            assert_eq!(span_millis(text, EventOption::Idle).ok(), core, "{text}");
        }
    }

    #[test]
    fn a_list_is_cut_at_its_own_commas_only() {
        let pieces = |text: &str| {
            let cut = between_commas(text.parse().unwrap()).into_iter();
            cut.map(|piece| piece.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(pieces("a = b, c(d, e),"), ["a = b", "c (d , e)"]);
        assert!(pieces("").is_empty());
    }
}
