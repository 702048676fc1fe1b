//! What the typed halves of all joins share: side outputs, and the node of a join in the plan.

use std::panic::Location;
use std::sync::Arc;

use super::claim::{AnyKeyOf, Claims, KeyCheck, keys_of};
use super::flow::{Flow, KeyMark, Output, Standing};
use super::input::Input;
use super::stream::Stream;
use super::unmatched::{Late, Unmatched};
use crate::account::Reason;
use crate::batch::{AnyBatch, Batch};
use crate::change::RowKind;
use crate::error::OpError;
use crate::key::Key;
use crate::op::joined::{Arrivals, Lateness, Shelf, Staged, Waiting, arrive, late_port, stage, unmatched_port};
use crate::op::kernel::Kind;
use crate::op::multi_join::OnExpiry;
use crate::op::{Operator, Outbox, Port};
use crate::plan::{Build, BuildCx, ChangeMode, Node, NodeId, Op, PortInfo};
use crate::record::Data;
use crate::state::{Held, Keeps, RowId, Slab, StateShape, StateSpec};
use crate::time::{EventTime, Watermark};

/// The names of a join and its inputs, which late rows are told with, and who goes by the key of its results.
#[derive(Clone)]
pub struct Names {
    operator: Arc<str>,
    inputs: Arc<[Arc<str>]>,
    keys: Arc<[Option<AnyKeyOf>]>,
    claims: Claims,
}

/// Where the late rows of an input go, and whose they are.
#[derive(Clone, Copy)]
pub struct LateSide<'a> {
    port: Port,
    operator: &'a Arc<str>,
    input: &'a Arc<str>,
}

impl Names {
    /// Where the late rows of an input go.
    pub fn late_side(&self, input: usize) -> LateSide<'_> {
        let port = late_port(input, self.inputs.len());
        LateSide { port, operator: &self.operator, input: &self.inputs[input] }
    }

    /// The check of the keys of its results, if anybody takes its word for them.
    pub fn key_check(&self) -> Option<KeyCheck> {
        self.claims.check(&self.keys)
    }
}

impl LateSide<'_> {
    fn row<T>(&self, row: T, time: EventTime, watermark: Watermark) -> Late<T> {
        let (watermark, operator, input) = (watermark.time(), self.operator.clone(), self.input.clone());
        Late { row, watermark, late_by: watermark.since(time), input, operator }
    }
}

/// Takes rows into a slab, and late ones to their side output.
pub fn take_in<K: Key, T: Data>(
    slab: &mut Slab<T>,
    batch: AnyBatch,
    lateness: Lateness,
    side: LateSide<'_>,
    arrivals: &mut Arrivals<K>,
    out: &mut Outbox,
) -> Result<(), OpError> {
    let mut late = Batch::default();
    let wanted = out.wants(side.port);
    arrive(slab, batch, lateness, arrivals, |row, time, kind| {
        if wanted {
            late.push(side.row(row, time, lateness.late_before), time, kind);
        }
    })?;
    if !late.is_empty() {
        out.send(side.port, AnyBatch::new(late));
    }
    Ok(())
}

/// As [`take_in`], where rows have no place yet.
pub fn stage_in<K: Key, T: Data>(
    waiting: &mut Waiting<T>,
    batch: AnyBatch,
    lateness: Lateness,
    side: LateSide<'_>,
    out: &mut Outbox,
) -> Result<Staged<K>, OpError> {
    let mut late = Batch::default();
    let wanted = out.wants(side.port);
    let staged = stage(waiting, batch, lateness, |row, time, kind| {
        if wanted {
            late.push(side.row(row, time, lateness.late_before), time, kind);
        }
    })?;
    if !late.is_empty() {
        out.send(side.port, AnyBatch::new(late));
    }
    Ok(staged)
}

/// Moves rows out of state to their side output.
pub fn send_unmatched<T: Data, S: Default, F: Fn(&mut S) -> &mut Option<Held<T>>>(
    mut shelf: Shelf<'_, T, S, F>,
    ids: &[RowId],
    (reason, not_before): (Reason, EventTime),
    port: Port,
    out: &mut Outbox,
) {
    if !out.wants(port) {
        ids.iter().for_each(|&id| shelf.discard(id));
        return;
    }
    let mut batch = Batch::default();
    for held in ids.iter().filter_map(|&id| shelf.remove(id)) {
        let time = held.time().max(not_before);
        batch.push(Unmatched { row: held.row, reason }, time, RowKind::Insert);
    }
    out.send(port, AnyBatch::new(batch));
}

/// Moves rows out of a slab to the output of late ones.
pub fn send_late<T: Data>(
    slab: &mut Slab<T>,
    ids: &[RowId],
    watermark: Watermark,
    side: LateSide<'_>,
    out: &mut Outbox,
) {
    if !out.wants(side.port) {
        ids.iter().for_each(|&id| slab.discard(id));
        return;
    }
    let mut batch = Batch::default();
    for held in ids.iter().filter_map(|&id| slab.remove(id)) {
        let time = held.time();
        batch.push(side.row(held.row, time, watermark), time, RowKind::Insert);
    }
    out.send(side.port, AnyBatch::new(batch));
}

// What the inputs of a join are called: where several are of one name, by their numbers.
fn labels_of(inputs: &[Input]) -> Vec<String> {
    let label = |input: &Input| input.output.label.clone();
    let mut labels: Vec<String> = Vec::with_capacity(inputs.len());
    for (place, input) in inputs.iter().enumerate() {
        let before = inputs[..place].iter().filter(|other| other.output.label == input.output.label).count();
        labels.push(if before == 0 { label(input) } else { format!("{} {}", label(input), before + 1) });
    }
    labels
}

fn side_label(what: &str, input: &str) -> String {
    format!("{what} {input}")
}

/// A join that is being put together: its inputs, its name, and its place in the plan.
pub struct JoinDraft {
    pub inputs: Vec<Input>,
    pub name: Option<String>,
    pub place: &'static Location<'static>,
}

/// A join that has a place in the plan.
pub struct Placed {
    pub draft: JoinDraft,
    pub node: NodeId,
}

impl JoinDraft {
    /// The flow that it belongs to.
    pub fn flow(&self) -> &Flow {
        &self.inputs[0].output.flow
    }

    /// Gives it a place in the plan, so that side outputs can be read before it is finished.
    pub fn place(self) -> Placed {
        let flow = self.flow().clone();
        for input in &self.inputs {
            flow.must_own(&input.output, self.place);
        }
        let node = flow.reserve(self.place);
        Placed { draft: self, node }
    }

    fn name(&self, kind: &str) -> String {
        let labels = || self.inputs.iter().map(|input| input.output.label.as_str()).collect::<Vec<_>>();
        self.name.clone().unwrap_or_else(|| format!("{}-{kind}", labels().join("-").replace(' ', "-")))
    }
}

impl Placed {
    /// The stream of a side output.
    fn side<T: Data>(&self, what: &str, input: usize, port: Port) -> Stream<T> {
        let label = side_label(what, &labels_of(&self.draft.inputs)[input]);
        Stream::at(Output { flow: self.draft.flow().clone(), from: self.node, port, label, keyed: None })
    }

    /// The stream of the rows of an input that were left alone.
    pub fn unmatched<T: Data>(&self, input: usize) -> Stream<Unmatched<T>> {
        self.side("unmatched", input, unmatched_port(input))
    }

    /// The stream of the rows of an input that came behind the watermark.
    pub fn late<T: Data>(&self, input: usize) -> Stream<Late<T>> {
        self.side("late", input, late_port(input, self.draft.inputs.len()))
    }

    /// Puts the finished join into the plan; returns its main output. The operators are built with the names that their
    /// late rows are told with.
    pub fn finish(
        self,
        op: Op,
        (shape, keeps): (StateShape, Vec<Keeps>),
        mode: ChangeMode,
        build: impl Fn(&BuildCx, &Names) -> Box<dyn Operator> + Send + Sync + 'static,
    ) -> Output {
        let Placed { draft, node: id } = self;
        let kind = match &op {
            Op::IntervalJoin(_) => "interval",
            Op::TemporalJoin { .. } => "temporal",
            Op::SnapshotJoin { .. } => "snapshot",
            Op::WindowJoin { .. } => "window",
            _ => "join",
        };
        let name = draft.name(kind);
        let labels = labels_of(&draft.inputs);
        let side = |what: &str, label: &String| PortInfo { label: side_label(what, label), mode: ChangeMode::Append };
        let mut ports = vec![PortInfo::main(mode)];
        ports.extend(labels.iter().map(|label| side("unmatched", label)));
        ports.extend(labels.iter().map(|label| side("late", label)));
        let kept = labels.iter().zip(keeps);
        let state = kept.map(|(label, keeps)| StateSpec { input: label.clone(), shape, keeps }).collect();
        let claims = Claims::default();
        let names = Names {
            operator: name.as_str().into(),
            inputs: labels.iter().map(|label| label.as_str().into()).collect(),
            keys: keys_of(&draft.inputs).into(),
            claims: claims.clone(),
        };
        let flow = draft.flow().clone();
        // All changes of a key come out in order if they came in so, as facts always do. What is not shown cannot be two
        // rows of a key for a while.
        let in_order =
            |input: &Input| input.mode == ChangeMode::Append || input.output.keyed.is_some() || !input.kind.shows();
        let keyed = draft.inputs.iter().find_map(|input| input.output.keyed.clone());
        let keyed = keyed.filter(|_| draft.inputs.iter().all(in_order));
        let keyed = keyed.map(|mark| {
            let standing = standing(&op, &draft.inputs, mark.may_be_null);
            KeyMark { standing, claims: Some(claims), ..mark }
        });
        flow.fill(Node {
            id,
            name: name.clone(),
            op,
            inputs: draft.inputs.iter().map(|input| input.output.edge()).collect(),
            ports,
            state,
            declared_at: draft.place,
            build: Build::Operator(Arc::new(move |cx| build(cx, &names))),
        });
        Output { flow, from: id, port: Port::MAIN, label: name, keyed }
    }
}

// How many results of a key stand, and whether the last change of a key is that of one that does.
fn standing(op: &Op, inputs: &[Input], may_be_null: bool) -> Standing {
    let shown = |kind: Kind| kind.shows();
    if inputs.iter().all(|input| input.unique_is_key || !input.kind.shows()) && !matches!(op, Op::WindowJoin { .. }) {
        // Rows with a null key do not meet: each input may have one in the result.
        let alone = may_be_null && inputs.iter().filter(|input| input.kind.shows()).count() > 1;
        return if alone { Standing::Several } else { Standing::One };
    }
    // One of several rows of a key goes for good. Where there is but one, or rows only have to exist, all results of the key
    // go together.
    let goes = |input: &Input| {
        let several = input.output.keyed.as_ref().is_none_or(|mark| mark.standing == Standing::Several);
        input.mode == ChangeMode::Changelog && input.kind.shows() && several
    };
    let is_newest = match op {
        // A gap goes when it is filled, and what fills it comes. With conditions that need not be so for all of a key.
        Op::MultiJoin { kinds, conditions, on_expiry, .. } => {
            let changes = inputs.iter().any(|input| input.mode == ChangeMode::Changelog);
            let tests = conditions.contains(&true) && (changes || !kinds.iter().copied().all(shown));
            *on_expiry == OnExpiry::Silent && !inputs.iter().any(goes) && !tests
        }
        Op::IntervalJoin(spec) => spec.kinds.iter().copied().all(shown),
        // What is corrected by key and time says nothing of the other results of the key.
        _ => false,
    };
    if is_newest { Standing::Newest } else { Standing::Several }
}
