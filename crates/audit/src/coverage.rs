//! What proofs of rules cover: which aspects of their instances were general, and which were fixed.

use regraft_prove::leading_axes;
use regraft_rules::{Coverage, Draw, Proof, Proofs, Rule};

/// What the instances of a proof cover.
pub fn coverage(rule: &Rule, proof: &Proof) -> Coverage {
    let mut coverage = Coverage::default();
    for draw in &proof.instances {
        let Ok(instance) = draw.instance(rule) else { continue };
        coverage.add(rule, &instance.before);
        coverage.any_rank |= !leading_axes(&instance.before, &instance.after).is_empty();
    }
    coverage
}

/// The Markdown document that reports the coverage of every rule.
pub fn coverage_document(rules: &[Rule], proofs: &Proofs) -> String {
    let covered: Vec<(&Rule, Option<Coverage>)> =
        rules.iter().map(|rule| (rule, proofs.of(rule).map(|proof| coverage(rule, proof)))).collect();
    let count = |which: &dyn Fn(&Coverage) -> bool| covered.iter().filter(|(_, c)| c.as_ref().is_some_and(which)).count();
    let instances: Vec<&Draw> = rules.iter().filter_map(|rule| proofs.of(rule)).flat_map(|proof| &proof.instances).collect();
    let generated = instances.iter().filter(|draw| !draw.changes.is_empty()).count();
    let mut text = format!(
        "# What the proofs of the rules cover\n\n\
         Made by `regraft rules verify --coverage docs/rule-coverage.md`; a test holds it up to date. A rule is proved on instances: those that its clause\n\
         draws, and those that are generated from these by changing one thing after the other, as far as the guards admit ({} of {} in all). Sizes that are\n\
         symbols are general (`any`); all else is what it was in some instance: ranks, sizes that are numbers, attributes, element types (`real` stands for\n\
         every floating-point type), optional operands that were given or absent. `any leading axes`: an instance holds with any number of axes in the place\n\
         of a leading one. All rewrites of a result are proved again where they are made; one that is not shown there, and is outside of this, is not\n\
         written. Lists of more than six values say how many there are.\n\n\
         Of {} rules, {} have an operand size that is general, {} hold for any number of leading axes, and {} were proved with one value of every\n\
         attribute only.\n\n| rule | proved for |\n|---|---|\n",
        generated,
        instances.len(),
        rules.len(),
        count(&Coverage::has_symbols),
        count(&|c| c.any_rank),
        count(&|c| !c.attributes.is_empty() && c.attributes.values().all(|values| values.len() == 1)),
    );
    for (rule, covered) in &covered {
        let said = covered.as_ref().map_or_else(|| "nothing".to_string(), ToString::to_string);
        text.push_str(&format!("| `{}` | {} |\n", rule.name, said.replace('|', "\\|")));
    }
    text
}
