//! What the store remembers of earlier hunts for the same model: rewrites that were good, and whether there was more to find.

use regraft_cost::{CostModel, fingerprint};
use regraft_ir::Graph;
use regraft_ir::key::canonical_key;
use regraft_onnx::Model;
use regraft_rules::{Library, Writable};
use regraft_search::{Engine, Matcher, Script, all_moves, next_moves};
use serde::{Deserialize, Serialize};

use crate::optimize::propose::{Proposal, replay};
use crate::optimize::request::Request;
use crate::sizes::Sizes;

/// What is remembered. It holds for one model at one set of sizes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Which rules were searched with: rewrites that were good under others may be less than the best under these.
    pub library: u64,
    /// Seconds that the hunt was given.
    pub budget: f64,
    /// True if the hunt ended because nothing more was found.
    pub settled: bool,
    /// Rewrites that passed the final comparison and the check, best first, as places.
    pub scripts: Vec<Vec<u64>>,
}

impl Memory {
    /// What memories of a model are kept under: its graph with its weights, the sizes, and how it was searched.
    pub fn key(start: &Graph, model: &Model, sizes: &Sizes, request: &Request) -> String {
        let search = format!("{:?}", request.search).to_lowercase();
        format!("hunt:{search}:{}:{:032x}", fingerprint(start, &sizes.symbols), canonical_key(model.graph()))
    }

    /// Takes the rewrites of a script again, from the same graph; `None` if one of its places does not come up.
    pub fn replay(script: &[u64], start: &Graph, prices: &dyn CostModel, library: &Library, writable: &dyn Writable) -> Option<Proposal> {
        let mut engine = Engine::new(start.clone(), prices);
        let mut matcher = Matcher::new(library, writable);
        let mut moves = all_moves(&mut engine, &mut matcher);
        let mut taken = Vec::new();
        for place in script {
            let step = moves.iter().find(|m| m.place() == *place)?.clone();
            engine.apply(&step);
            moves = next_moves(&mut engine, &mut matcher, &moves);
            taken.push(step);
        }
        let script = Script { moves: taken, cost: engine.cost(), key: engine.key() };
        while engine.undo() {}
        replay(&mut engine, library, &script)
    }
}
