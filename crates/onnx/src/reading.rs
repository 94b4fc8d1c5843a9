//! How a model is read: on its own, as part of another one, or for the inputs of another one.

use std::collections::HashSet;

use regraft_ir::{NodeId, TensorType};

use crate::error::{LoadError, LoadFault};
use crate::facts::{Fact, Facts, Given};
use crate::import::{Importer, Outcome};
use crate::proto::ModelProto;
use crate::scope::analyze;

/// Times that a model is read again with what its nodes say about its sizes.
const ROUNDS: usize = 32;

/// How a model is read.
#[derive(Clone, Copy)]
pub(crate) enum Reading<'g> {
    /// On its own: declared intermediate sizes are trusted unless one of them is shown to be wrong
    /// (then none is), and facts about sizes are used.
    Alone,
    /// As part of another one: declared intermediate sizes are not trusted from the start, only
    /// element types and ranks are; and there are no facts, since it may never run.
    Cautious,
    /// Like `Alone`, but the sizes of its inputs are these, whatever it says about them itself.
    Under(&'g Given, &'g [Fact]),
}

/// Imports the model's graph, as often as it takes to know its facts.
pub(crate) fn read(model: &ModelProto, reading: Reading<'_>) -> Result<Outcome, LoadError> {
    let graph = model.graph.as_ref().ok_or_else(|| LoadError::new(LoadFault::NoGraph))?;
    let scope = analyze(graph)?;
    let run = |trust: bool, given: &Given| Importer::new(model, graph, &scope, trust, given).run();
    let none = Given::default();
    let (given, facts, first) = match reading {
        Reading::Cautious => return Ok(run(false, &none)?.finish()),
        Reading::Under(given, facts) => (given.clone(), facts.to_vec(), run(true, given)?),
        Reading::Alone => {
            let first = run(true, &none)?;
            let facts = if first.needs.is_empty() { Facts::default() } else { facts(&|given| run(false, given))? };
            let given = facts.given();
            let again = (given != none).then(|| run(true, &given)).transpose()?;
            (given, facts.list(), again.unwrap_or(first))
        }
    };
    let mut notes: Vec<String> = facts.iter().map(|fact| format!("sizes: {fact}")).collect();
    if first.distrust.is_empty() {
        return Ok(Outcome { notes, facts, ..first.finish() });
    }
    notes.insert(0, format!("declared intermediate sizes are not used, because some are wrong: {}", first.distrust.join("; ")));
    Ok(Outcome { notes, facts, ..run(false, &given)?.finish() })
}

/// What the nodes of a model say about its sizes, where `read` reads it under given sizes and
/// trusts no declared ones.
fn facts<'a>(read: &dyn Fn(&Given) -> Result<Importer<'a>, LoadError>) -> Result<Facts, LoadError> {
    let mut facts = Facts::default();
    for _ in 0..ROUNDS {
        let read = read(&facts.given())?;
        let mut free = Vec::new();
        let inputs = read.graph.inputs().iter().filter_map(|id| read.graph.ty(id.out()));
        inputs.flat_map(|ty| ty.shape.iter()).for_each(|size| size.symbols(&mut free));
        let mut seen = HashSet::new();
        free.retain(|symbol| seen.insert(symbol.clone()));
        if !facts.learn(&read.needs, &free, &|name| read.symbols.has(name)) {
            break;
        }
    }
    Ok(facts)
}

/// The types of a model's inputs by name, as it declares them.
pub(crate) fn declared_inputs(model: &ModelProto) -> Result<Vec<(String, TensorType)>, LoadError> {
    let graph = model.graph.as_ref().ok_or_else(|| LoadError::new(LoadFault::NoGraph))?;
    let scope = analyze(graph)?;
    let mut importer = Importer::new(model, graph, &scope, true, &Given::default());
    importer.leaves()?;
    let named = |id: &NodeId| Some((importer.graph.node(*id).names[0].as_deref()?.to_string(), importer.graph.ty(id.out())?.clone()));
    Ok(importer.graph.inputs().iter().filter_map(named).collect())
}
