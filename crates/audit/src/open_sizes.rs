//! Which rules need a size of their data to be a number, and why.

use std::collections::BTreeSet;
use std::fmt::Write;

use regraft_ir::{Dim, Graph, NodeId, Op, OpKind, TensorType};
use regraft_rules::sample::Sizes;
use regraft_rules::{Anything, Draw, Found, Proofs, Rule, instantiate, matches_at};

/// Instances drawn of a rule beside those of its proof.
const DRAWS: u64 = 512;
/// Which axis has the channels of what a convolution reads.
const CHANNELS: usize = 1;

/// Whether the rule applies in some instance of its proof, or in a drawn one, with all sizes of its
/// data open. Deterministic.
pub fn applies_when_open(rule: &Rule, proofs: &Proofs) -> bool {
    let proved = proofs.of(rule).into_iter().flat_map(|proof| proof.instances.clone());
    let drawn = (0..DRAWS).flat_map(|seed| [Sizes::Some, Sizes::Open].map(|sizes| Draw::new(sizes, seed)));
    let mut instances = proved.filter(|draw| draw.sizes != Sizes::Known).chain(drawn).filter_map(|draw| draw.instance(rule).ok());
    instances.any(|instance| is_open(&instance.before))
}

/// Whether the rule applies in a graph, and the graph has all sizes of its data open.
fn applies_at(rule: &Rule, graph: &Graph) -> bool {
    let applies = |found: &Found| instantiate(graph, rule, found, &Anything).is_ok();
    is_open(graph) && graph.ids().any(|id| matches_at(graph, rule, 0, id).iter().any(applies))
}

/// Whether all sizes of a graph's inputs are symbols, except for those that weights or operators
/// give; and some are.
fn is_open(graph: &Graph) -> bool {
    let is_data = |id: &NodeId| matches!(graph.node(*id).op, Op::Input(_)) && !graph.node(*id).constant;
    let data: Vec<&TensorType> = graph.ids().filter(is_data).filter_map(|id| graph.ty(id.out())).collect();
    let (given, has_channels) = (given(graph), has_channels(graph));
    let is_given = |axis: usize, size: i64| given.contains(&size) || has_channels && axis == CHANNELS;
    let needs_none = |ty: &&TensorType| (0..ty.rank()).all(|axis| ty.shape[axis].known().is_none_or(|size| is_given(axis, size)));
    data.iter().any(|ty| ty.shape.iter().any(|size| size.known().is_none())) && data.iter().all(needs_none)
}

/// Sizes that occur in constants, those that splits cut, and 1.
fn given(graph: &Graph) -> BTreeSet<i64> {
    let constants = graph.ids().filter(|id| graph.node(*id).constant || matches!(graph.node(*id).op, Op::Constant(_)));
    let sizes = constants.flat_map(|id| graph.node(id).types.iter().flatten()).flat_map(|ty| &ty.shape).filter_map(Dim::known);
    let cut = graph.ids().filter_map(|id| match &graph.node(id).op {
        Op::Split(split) => Some(split.sizes.iter().sum()),
        _ => None,
    });
    sizes.chain(cut).chain([1]).collect()
}

/// Whether the weights of a convolution give the channels of the data.
fn has_channels(graph: &Graph) -> bool {
    graph.ids().any(|id| graph.node(id).op.kind() == OpKind::Conv)
}

/// The Markdown document that lists all rules that need to know a size of their data, with the
/// reasons. `examples` are graphs in which a rule applies with all sizes open, where no instance
/// shows that it does. `reasons` are paragraphs: a title, the reason, and the rules after a colon.
/// The error names rules with no reason or no need of one, and examples that show nothing.
pub fn open_sizes_document(rules: &[Rule], proofs: &Proofs, examples: &[(&str, Graph)], reasons: &str) -> Result<String, String> {
    let mut left: BTreeSet<&str> = BTreeSet::new();
    for rule in rules {
        match examples.iter().find(|(name, _)| *name == &*rule.name) {
            Some((name, graph)) if !applies_at(rule, graph) => {
                return Err(format!("the example of {name} does not show it with open sizes"));
            }
            Some(_) => {}
            None if applies_when_open(rule, proofs) => {}
            None => drop(left.insert(&rule.name)),
        }
    }
    let mut text = format!(
        "# Rules that need a known size\n\n\
         A test holds this list up to date. Of {} rules, {} apply in some instance with all sizes of their data open: what a\n\
         target needs of them is computed when the model runs, or not needed. Sizes that weights give do not count, nor does\n\
         the size of an axis that a Split cuts, which the operator itself says. The others are listed here. They apply where\n\
         the sizes named are numbers, whatever the other sizes are; `--freeze` makes all sizes numbers.\n",
        rules.len(),
        rules.len() - left.len(),
    );
    for paragraph in reasons.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
        let (title, rest) = paragraph.split_once('\n').ok_or("a title without a reason")?;
        let (reason, names) = rest.split_once("\n: ").ok_or_else(|| format!("{title}: no rules"))?;
        let _ = write!(text, "\n## {title}\n\n{reason}\n\n");
        for name in names.split_whitespace() {
            if !left.remove(name) {
                return Err(format!("{name} needs no known size, or is named twice"));
            }
            let _ = writeln!(text, "* `{name}`");
        }
    }
    if left.is_empty() { Ok(text) } else { Err(format!("no reason is given why these need a known size: {left:?}")) }
}
