//! What is taken back of a session that has become longer: each result under the window that it was told with.

use super::super::Outbox;
use super::super::joined::Combo;
use super::emit::Emitter;
use super::fired::FiredRows;
use super::windows::Window;
use crate::key::Key;
use crate::state::{Extent, FirstStretches, RowId, Session, Told};

/// What was said from this one on of a session, which has this window now, is said under the windows that it is of. To be
/// called before it is noted that the rows of the session have come out.
pub fn say_apart<K: Key, const N: usize>(
    session: &mut Session<FiredRows<N>>,
    from: usize,
    window: Window,
    emitter: &mut Emitter<K, N>,
    out: &mut Outbox,
) {
    if session.told.is_none() {
        return;
    }
    let (comes, goes): (Vec<_>, Vec<_>) = emitter.take_said(from).into_iter().partition(|combo| combo.kind.adds());
    let again = told_again(session, &comes);
    if goes.is_empty() && again.is_empty() {
        return emitter.say(comes);
    }
    let places = Places::of(session, goes.iter().map(|combo| &combo.ids).chain(&again));
    let Some(told) = &mut session.told else { return };
    let was_told = |combo: Combo<N>| {
        let under = told.take_again(&combo.ids).or_else(|| places.window(told, &combo.ids));
        (under, combo)
    };
    let mut goes: Vec<(Option<Extent>, Combo<N>)> = goes.into_iter().map(was_told).collect();
    goes.sort_by_key(|&(under, _)| under);
    for together in goes.chunk_by(|one, other| one.0 == other.0) {
        let under = together[0].0.map_or(window, |(oldest, last)| Window::of(oldest.into(), last.into()));
        emitter.enter(under, out);
        emitter.say(together.iter().map(|&(_, combo)| combo));
    }
    let now = (window.start().as_millis(), window.last().as_millis());
    for ids in &again {
        if places.window(told, ids).is_some() {
            told.tell_again(ids, now);
        }
    }
    emitter.enter(window, out);
    emitter.say(comes);
}

// The combinations with a gap of which no row has just come. With two inputs there are none: a row that has no partner is
// told when it comes, and is never again without one after it had one.
fn told_again<const N: usize>(session: &Session<FiredRows<N>>, comes: &[Combo<N>]) -> Vec<[RowId; N]> {
    let has_gap = |combo: &&Combo<N>| N > 2 && combo.ids.iter().any(|id| id.is_missing());
    if !comes.iter().any(|combo| has_gap(&combo)) {
        return Vec::new();
    }
    let mut new: Vec<(u8, RowId)> = session.unsaid().map(|member| (member.input, member.id)).collect();
    new.sort_unstable();
    let has_new = |ids: &[RowId; N]| rows(ids).any(|row| new.binary_search(&row).is_ok());
    comes.iter().filter(has_gap).map(|combo| combo.ids).filter(|ids| !has_new(ids)).collect()
}

// Where the rows of some combinations stand among the members of a session.
struct Places {
    rows: Vec<(u8, RowId)>,
    places: Vec<usize>,
    first: FirstStretches,
}

impl Places {
    fn of<'a, const N: usize>(session: &Session<FiredRows<N>>, combos: impl Iterator<Item = &'a [RowId; N]>) -> Places {
        let mut rows: Vec<(u8, RowId)> = combos.flat_map(rows).collect();
        rows.sort_unstable();
        rows.dedup();
        let mut places = vec![0; rows.len()];
        for (place, member) in session.members.iter().enumerate() {
            if let Ok(at) = rows.binary_search(&(member.input, member.id)) {
                places[at] = place;
            }
        }
        let told = session.told.as_ref().expect("only sessions that were told under other windows are asked for");
        Places { rows, places, first: told.first_stretches(session.members.len()) }
    }

    // The window under which a combination was told; none if it is the one of now.
    fn window<const N: usize>(&self, told: &Told, ids: &[RowId; N]) -> Option<Extent> {
        let place = |row| self.rows.binary_search(&row).map_or(0, |at| self.places[at]);
        told.of(&self.first, rows(ids).map(place))
    }
}

// The rows of a combination that are there, each with its input.
fn rows<const N: usize>(ids: &[RowId; N]) -> impl Iterator<Item = (u8, RowId)> + Clone {
    ids.iter().enumerate().filter(|(_, id)| !id.is_missing()).map(|(input, &id)| (input as u8, id))
}
