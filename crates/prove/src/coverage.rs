//! What proofs of rules cover: what was general in their instances, and what was fixed.

use regraft_rules::{Coverage, Proof, Proofs, Rule};

use crate::leading_axes;

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

/// The document that says so of every rule, as Markdown.
pub fn coverage_document(rules: &[Rule], proofs: &Proofs) -> String {
    let covered: Vec<(&Rule, Option<Coverage>)> =
        rules.iter().map(|rule| (rule, proofs.of(rule).map(|proof| coverage(rule, proof)))).collect();
    let count = |which: &dyn Fn(&Coverage) -> bool| covered.iter().filter(|(_, c)| c.as_ref().is_some_and(which)).count();
    let mut text = format!(
        "# What the proofs of the rules cover\n\n\
         Made by `regraft rules verify --coverage docs/rule-coverage.md`; a test holds it up to date. A rule is proved on instances. Sizes that are symbols\n\
         there are general (`any`); all else is what it was in some instance: ranks, sizes that are numbers, attributes, optional operands that were\n\
         given or absent. Real operands stand for every floating-point type. `any leading axes`: an instance holds with any number of axes in the place\n\
         of a leading one. Outside of this, `regraft optimize` applies a rule only if the rewrite itself is proved where it is made.\n\n\
         Of {} rules, {} have an operand size that is general, {} hold for any number of leading axes, and {} were proved with one value of every\n\
         attribute only.\n\n| rule | proved for |\n|---|---|\n",
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
