//! Every shipped rule has a proof, and every proof can be replayed.

use std::path::Path;

use regraft_audit::{generate, judge, replay};
use regraft_ir::{Trust, parallel};
use regraft_rules::variants::Effort;
use regraft_rules::{Library, Proof, Proofs, Rule};

/// Fast convolutions take a second each: one instance of each kind of sizes must do.
fn wanted(rule: &Rule) -> usize {
    if rule.name.starts_with("winograd") { 1 } else { 2 }
}

/// Calls `f` with every rule, on two threads, the costliest rules first; results in library order.
fn for_all<T: Send>(rules: &[Rule], f: impl Fn(&Rule) -> T + Sync) -> Vec<T> {
    let mut order: Vec<usize> = (0..rules.len()).collect();
    order.sort_by_key(|at| wanted(&rules[*at]));
    let made = parallel::map(&order, 2, |at| f(&rules[*at]));
    let mut all: Vec<(usize, T)> = order.into_iter().zip(made).collect();
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, made)| made).collect()
}

/// A proof on instances of the rule's clause, and on the others that its guards admit.
fn found(rule: &Rule) -> Proof {
    let mut proof = judge(rule, wanted(rule), 0).proof(rule);
    proof.instances.extend(generate(rule, Effort::default()).proved);
    proof
}

#[test]
fn every_shipped_rule_has_a_proof_that_replays() {
    let library = Library::shipped().unwrap();
    if std::env::var_os("REGRAFT_UPDATE_SNAPSHOTS").is_some() {
        let known = Proofs::shipped();
        let proofs: Vec<Proof> = for_all(library.rules(), |rule| {
            let generated = |proof: &&Proof| proof.instances.iter().any(|draw| !draw.changes.is_empty());
            let holds = |proof: &&Proof| generated(proof) && replay(rule, proof).is_ok_and(|j| j.proof(rule).trust == proof.trust);
            known.of(rule).filter(holds).cloned().unwrap_or_else(|| found(rule))
        });
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rules/library.proofs");
        std::fs::write(file, Proofs::new(proofs).text()).unwrap();
        return;
    }
    let proofs = Proofs::shipped();
    let failed = for_all(library.rules(), |rule| match proofs.of(rule) {
        None => Some(format!("{}: no proof of this text; REGRAFT_UPDATE_SNAPSHOTS=1 looks for one", rule.name)),
        Some(proof) if proof.trust < Trust::Bounded => Some(format!("{}: only {}", rule.name, proof.trust)),
        Some(proof) => replay(rule, proof).err().map(|why| format!("{}: {why}", rule.name)),
    });
    let failed: Vec<String> = failed.into_iter().flatten().collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// An instance clause describes random operands; only guards state what a rule may assume.
#[test]
fn operands_that_are_drawn_positive_are_not_known_to_be() {
    let text = "(rule abs-of-positive (abs ?x) => ?x (numeric exact) (doc \"False.\") (instance (n 1 2) (?x positive n 3)))
                (rule relu-of-abs (relu (abs ?x)) => (abs ?x) (numeric exact) (doc \"True.\") (instance (n 1 2) (?x positive n 3)))";
    let rules = regraft_rules::parse("narrow.rules", text).unwrap_or_else(|e| panic!("{e}"));
    let words: Vec<Trust> = rules.iter().map(|rule| judge(rule, 2, 0).trust()).collect();
    assert_eq!(words, [Trust::Unproved, Trust::Proved]);
}
