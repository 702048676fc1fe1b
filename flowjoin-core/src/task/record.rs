//! The record of a commit: of which flow its state is.

use serde::{Deserialize, Serialize};

use super::RestoreError;
use crate::plan::{Node, Plan};
use crate::state::{decode, encode};

/// What comes with the state of an epoch. State is that of a flow of these steps, in this order, over so many tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitRecord {
    tasks: usize,
    steps: Vec<String>,
    /// What the host keeps, in a form of its own.
    pub host: Vec<u8>,
}

impl CommitRecord {
    /// The record of a flow over so many tasks a stage.
    pub fn new(plan: &Plan, tasks: usize, host: Vec<u8>) -> CommitRecord {
        CommitRecord { tasks, steps: plan.nodes().iter().map(step_of).collect(), host }
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(self)
    }

    /// The record of these bytes.
    ///
    /// # Errors
    /// If they are not those of one.
    pub fn from_bytes(bytes: &[u8]) -> Result<CommitRecord, RestoreError> {
        decode(bytes).map_err(|error| RestoreError::Foreign(error.to_string()))
    }

    /// Whether the state is that of this flow over so many tasks.
    ///
    /// # Errors
    /// Which step is another one, or how many tasks there were.
    pub fn must_be_of(&self, plan: &Plan, tasks: usize) -> Result<(), RestoreError> {
        if self.tasks != tasks {
            let (was, is) = (self.tasks, tasks);
            return Err(RestoreError::Foreign(format!("it was kept by {was} tasks a stage, and there are {is} now")));
        }
        let now: Vec<String> = plan.nodes().iter().map(step_of).collect();
        let len = self.steps.len().max(now.len());
        let step = |steps: &[String], at: usize| steps.get(at).cloned().unwrap_or_else(|| "none".to_string());
        match (0..len).find(|&at| self.steps.get(at) != now.get(at)) {
            None => Ok(()),
            Some(at) => {
                let (was, is) = (step(&self.steps, at), step(&now, at));
                Err(RestoreError::Foreign(format!("step {at} of it is {was}, and that of the flow is {is}")))
            }
        }
    }
}

// What of a step its state depends on.
fn step_of(node: &Node) -> String {
    let inputs: Vec<usize> = node.inputs.iter().map(|edge| edge.from.0).collect();
    format!("`{}` ({:?}, inputs {inputs:?}, {:?})", node.name, node.op, node.state)
}
