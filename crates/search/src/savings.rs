//! What rules save in networks, under any prices.

use crate::{Engine, Greedy, Matcher, Steps, Strategy, all_moves};
use regraft_cost::{CostModel, Ns};
use regraft_ir::Graph;
use regraft_rules::{Library, Rule, RuleError, Writable, accept, sources_at};

/// Budget checks per descent.
const STEPS: u64 = 4096;

/// What a rule saves in a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Savings {
    /// Matches where it can be applied.
    pub places: usize,
    /// How often steepest descent with this rule alone applies it.
    pub applied: usize,
    /// The resulting saving, ns of one run.
    pub saved: Ns,
    /// Previous cost of one run, ns.
    pub before: Ns,
}

/// Whether a rule's source matches in a graph, guards included. If not, the rule saves nothing
/// there.
pub fn meets(graph: &Graph, rule: &Rule) -> bool {
    graph.ids().any(|id| sources_at(graph, rule, 0, id).iter_mut().any(|found| accept(graph, rule, found)))
}

/// A network that rules are tried on.
pub struct Testbed<'a> {
    engine: Engine<'a>,
    writable: &'a dyn Writable,
}

impl<'a> Testbed<'a> {
    /// A network in normal form, under these prices; rules apply where the result can be written.
    pub fn new(graph: Graph, prices: &'a dyn CostModel, writable: &'a dyn Writable) -> Testbed<'a> {
        Testbed { engine: Engine::new(graph, prices), writable }
    }

    /// What a rule saves, applied wherever it saves something; and the resulting graph, if it
    /// changed.
    pub fn savings(&mut self, rule: &Rule) -> Result<(Savings, Option<Graph>), RuleError> {
        let library = Library::new(vec![rule.clone()])?;
        let mut matcher = Matcher::new(&library, self.writable);
        let before = self.engine.cost();
        let places = all_moves(&mut self.engine, &mut matcher).len();
        let none = Savings { places, before, ..Savings::default() };
        if places == 0 {
            return Ok((none, None));
        }
        let descent = Greedy { depth: 1, ..Greedy::default() };
        let outcome = descent.search(&mut self.engine, &mut matcher, &mut Steps(STEPS));
        let Some(script) = outcome.scripts.first().filter(|script| script.cost < before) else { return Ok((none, None)) };
        script.moves.iter().for_each(|step| self.engine.apply(step));
        let after = self.engine.graph().clone();
        script.moves.iter().for_each(|_| {
            self.engine.undo();
        });
        Ok((Savings { applied: script.moves.len(), saved: before - script.cost, ..none }, Some(after)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regraft_cost::Roofline;
    use regraft_ir::{Bindings, text};
    use regraft_rules::{Anything, parse};

    #[test]
    fn savings_are_found_and_leave_the_network_as_it_is() {
        let graph = text::parse(
            "graph (x: f32[64,64], y: f32[64,64]) { a = Relu(x) b = Relu(a) c = Relu(y) d = Relu(c) e = Add(b, d) f = Neg(e) output f }",
        );
        let model = Roofline::new(Bindings::new());
        let mut testbed = Testbed::new(graph.unwrap(), &model, &Anything);
        let rule = |text: &str| parse("t", text).unwrap().remove(0);
        let twice = rule("(rule twice (relu (relu ?x)) => (relu ?x) (numeric exact))");
        let before = testbed.engine.key();
        let (savings, after) = testbed.savings(&twice).unwrap();
        assert_eq!((savings.places, savings.applied, meets(testbed.engine.graph(), &twice)), (2, 2, true));
        let after = after.expect("it saves something");
        assert_eq!((savings.saved, savings.before), (savings.before - model.total(&after), testbed.engine.cost()));
        assert_eq!(testbed.engine.key(), before);
        // One adds work; the other does not match.
        let dearer = rule("(rule dearer (neg ?x) => (sub (neg ?x) (sub ?x ?x)) (numeric exact))");
        assert_eq!(testbed.savings(&dearer).unwrap().0, Savings { places: 1, before: savings.before, ..Savings::default() });
        let absent = rule("(rule absent (tanh ?x) => (tanh ?x) (numeric exact))");
        assert!(!meets(testbed.engine.graph(), &absent));
        assert_eq!(testbed.savings(&absent).unwrap().0.places, 0);
    }
}
