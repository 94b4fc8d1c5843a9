//! One rule for every verdict, and what each depends on.

mod common;

use common::{conv, judged, only, operator, rule};
use regraft_foreign::{Difference, Guard, Guards, Rule, Soundness, judge, judge_all};
use regraft_ir::Trust;

#[test]
fn rules_that_are_true_for_all_shapes() {
    let rules = [
        "matmul(matmul(a,b),c)==matmul(a,matmul(b,c))",
        "ewmul(a,ewadd(b,c))==ewadd(ewmul(a,b),ewmul(a,c))",
        "ewadd(matmul(a,b),matmul(c,b))==matmul(ewadd(a,c),b)",
        "transpose(matmul(a,b))==matmul(transpose(b),transpose(a))",
        "relu(concat(1,a,b))==concat(1,relu(a),relu(b))",
        "concat(0,conv2d(1,1,0,2,a,b),conv2d(1,1,0,2,c,b))==relu(conv2d(1,1,0,0,concat(0,a,c),b))",
        "conv2d(2,1,0,0,concat(0,a,c),b)==concat(0,conv2d(2,1,0,0,a,b),conv2d(2,1,0,0,c,b))",
        "ewadd(concat(1,a,b),concat(1,c,d))==ewadd(concat(1,c,b),concat(1,a,d))",
        "poolmax(3,3,1,1,0,relu(a))==relu(poolmax(3,3,1,1,0,a))",
        "smul(conv2d(1,1,0,0,a,b),s)==conv2d(1,1,0,0,smul(a,s),b)",
        "split_1(1,matmul(a,concat(1,b,c)))==matmul(a,c)",
        "split_0(0,transpose(concat(1,a,b)))==transpose(a)",
        // Constants get their size from context.
        "matmul(a,Imatmul)==a",
        "ewmul(a,Iewmul)==a",
        "conv2d(1,1,0,0,a,Iconv(3,3))==a",
        "ewadd(a,conv2d(1,1,0,0,a,b))==conv2d(1,1,0,0,a,ewadd(b,Iconv(3,3)))",
    ];
    for rule in rules {
        let judgement = judged(rule);
        assert_eq!(judgement.soundness, Soundness::True, "{rule}: {:?}", judgement.counterexample);
        assert!(judgement.instances >= 16, "{rule}: {} instances", judgement.instances);
        assert!(judgement.counterexample.is_none(), "{rule}");
    }
}

#[test]
fn rules_that_need_guards() {
    use Guard::{AveragesCountPadding, DepthwiseConstants, EqualOutputsPerGroup, OddKernels, SameShape, SymmetricPadding, Ungrouped};
    let cases: [(&str, &[Guard]); 10] = [
        ("conv2d(1,1,0,0,a,ewadd(b,c))==ewadd(conv2d(1,1,0,0,a,b),conv2d(1,1,0,0,a,c))", &[SameShape]),
        ("concat(1,ewadd(a,b),ewadd(c,d))==ewadd(concat(1,a,c),concat(1,b,d))", &[SameShape]),
        ("ewadd(conv2d(1,1,0,0,a,b),conv2d(1,1,0,0,c,d))==conv2d(1,1,0,0,concat(1,a,c),concat(1,b,d))", &[Ungrouped]),
        ("concat(1,conv2d(1,1,0,0,a,b),conv2d(1,1,0,0,a,c))==conv2d(1,1,0,0,a,concat(0,b,c))", &[Ungrouped]),
        ("concat(1,conv2d(1,1,0,0,a,b),conv2d(1,1,0,0,c,d))==conv2d(1,1,0,0,concat(1,a,c),concat(0,b,d))", &[EqualOutputsPerGroup]),
        // In the other direction, the left side alone does not determine it.
        ("conv2d(1,1,0,0,concat(1,a,c),concat(0,b,d))==concat(1,conv2d(1,1,0,0,a,b),conv2d(1,1,0,0,c,d))", &[EqualOutputsPerGroup]),
        ("conv2d(1,1,0,0,a,b)==conv2d(1,1,0,0,a,enlarge(3,3,b))", &[OddKernels]),
        ("conv2d(2,2,0,0,a,b)==conv2d(2,2,0,0,a,enlarge(3,3,b))", &[OddKernels, SymmetricPadding]),
        ("poolavg(3,3,1,1,0,a)==conv2d(1,1,0,0,a,Cpool(3,3))", &[AveragesCountPadding, DepthwiseConstants]),
        ("poolavg(3,3,1,1,0,ewadd(a,b))==ewadd(poolavg(3,3,1,1,0,a),poolavg(3,3,1,1,0,b))", &[SameShape]),
    ];
    for (rule, guards) in cases {
        let judgement = judged(rule);
        let guards: Guards = guards.iter().copied().collect();
        assert_eq!(judgement.soundness, Soundness::TrueIf(guards), "{rule}: {:?}", judgement.counterexample);
        assert!(judgement.counterexample.is_some(), "{rule}");
    }
}

#[test]
fn rules_that_are_false_have_a_counterexample() {
    for rule in [
        "relu(ewadd(a,b))==ewadd(relu(a),relu(b))",
        "matmul(a,b)==matmul(b,a)",
        "conv2d(1,1,0,0,a,b)==conv2d(1,1,0,2,a,b)",
        "transpose(a)==relu(transpose(a))",
        "smul(matmul(a,b),s)==matmul(smul(a,s),smul(b,s))",
        "split_0(1,matmul(a,concat(1,b,c)))==matmul(a,c)",
        "conv2d(1,1,1,0,a,b)==conv2d(1,1,0,0,a,b)",
        "conv2d(1,1,0,0,conv2d(1,1,0,0,a,b),c)==conv2d(1,1,0,0,conv2d(1,1,0,0,a,c),b)",
    ] {
        let judgement = judged(rule);
        assert_eq!((&judgement.soundness, judgement.trust), (&Soundness::False, Trust::Refuted), "{rule}");
        assert!(judgement.counterexample.is_some(), "{rule}");
    }
}

#[test]
fn a_counterexample_can_be_followed_by_hand() {
    let judgement = judged("ewadd(a,a)==ewmul(a,a)");
    let wrong = judgement.counterexample.expect("2 a is not a a");
    assert_eq!(wrong.shapes, [("a".to_owned(), vec![1])]);
    let Difference::Values { before, after, index, .. } = wrong.difference else { panic!("{}", wrong.difference) };
    assert_eq!(index, [0]);
    let a = before / 2.0;
    assert_eq!((a * a, a.fract()), (after, 0.0));

    let grouped = judged("ewadd(conv2d(1,1,0,0,a,b),conv2d(1,1,0,0,c,d))==conv2d(1,1,0,0,concat(1,a,c),concat(1,b,d))");
    let wrong = grouped.counterexample.expect("groups mix");
    assert!(wrong.groups.iter().any(|g| *g > 1), "{wrong}");
    assert!(wrong.to_string().contains(", groups ["), "{wrong}");
    let shapes = judged("concat(1,ewadd(a,b),ewadd(c,d))==concat(1,ewadd(a,c),ewadd(b,d))");
    assert_eq!(shapes.soundness, Soundness::False);
}

#[test]
fn rules_without_a_meaning_are_not_judged() {
    for (rule, part) in [
        ("matmul(relu(concat(3,a,b)),c)==c", "no sizes are known"),
        ("split_0(1,a)==a", "no sizes are known"),
        ("concat(1,a,Iewmul)==a", "its constants have no sizes"),
        ("conv2d(1,1,0,0,transpose(a),b)==a", "no sizes are known"),
    ] {
        let judgement = judged(rule);
        assert!(matches!(&judgement.soundness, Soundness::Unjudged(why) if why.contains(part)), "{rule}: {}", judgement.soundness);
        assert_eq!(judgement.trust, Trust::Unproved);
    }
    // A tensor concatenated with itself repeatedly has no size that can be tried.
    let double = |n: usize| (0..n).fold("x".to_owned(), |t, _| format!("concat(0,{t},{t})"));
    assert_eq!(judged(&format!("{0}=={0}", double(8))).soundness, Soundness::True);
    let cat = |at: i64| operator(12, &[(at, 0), (at, 0)], &[(10, 2), (11, 0)]);
    let chain: Vec<Vec<u8>> = (-1..60).map(cat).collect();
    assert!(matches!(judge(&only(&rule(&chain, &chain, &[[60, 0, 60, 0]])), 1).soundness, Soundness::Unjudged(_)));
    let topk = judge(&only(&rule(&[operator(45, &[(-1, 0)], &[])], &[operator(8, &[(-1, 0)], &[])], &[[0, 0, 0, 0]])), 0);
    assert_eq!(topk.soundness.to_string(), "not judged: `operator45` has no meaning here");
}

#[test]
fn merged_groups_keep_the_meaning_of_a_convolution() {
    let merge =
        |count| rule(&[conv((-1, 0), (-2, 0))], &[operator(21, &[(-2, 0)], &[(14, count)]), conv((-1, 0), (0, 0))], &[[0, 0, 1, 0]]);
    let judgement = judge(&only(&merge(2)), 0);
    assert_eq!((judgement.algebra.as_str(), &judgement.soundness), ("conv(a, b) => conv(a, merge2(b))", &Soundness::True));
    // Elsewhere the number of groups is unknown.
    let relu = |at| operator(8, &[(at, 0)], &[]);
    let lost = rule(&[relu(-1)], &[operator(21, &[(-1, 0)], &[(14, 2)]), relu(0)], &[[0, 0, 1, 0]]);
    assert!(matches!(judge(&only(&lost), 0).soundness, Soundness::Unjudged(_)));
}

#[test]
fn all_typings_are_tried() {
    let kinds = judged("ewadd(a,smul(b,s))==ewadd(smul(b,s),a)").typings;
    for kind in ["a tensor of 4 axes, b tensor of 4 axes, c scalar", "a matrix, b matrix, c scalar"] {
        assert!(kinds.iter().any(|k| k == kind), "{kinds:?}");
    }
    assert!(kinds.iter().any(|k| k.contains("matrix") && k.contains("tensor")), "mixed ranks broadcast: {kinds:?}");
    assert_eq!(judged("(concat 1 2 ?x ?y)=>(concat 1 2 ?x ?y)").typings, ["a matrix, b matrix"]);
    assert_eq!(judged("(conv2d 1 1 0 0 ?x (relu ?w))=>(conv2d 1 1 0 0 ?x (relu ?w))").typings, ["a image, b kernel"]);
    assert_eq!(judged("matmul(a,b)==matmul(a,b)").typings.len(), 2);
}

#[test]
fn judging_many_is_deterministic_and_finds_repetitions() {
    let text = "matmul(a,b)==matmul(b,a) ewadd(x,y)==ewadd(y,x) matmul(u,v)==matmul(v,u) ewadd(y,x)==ewadd(x,y) ewadd(x,x)==x";
    let rules: Vec<Rule> = common::read(text.as_bytes());
    let one = judge_all(&rules, 1, 2, &|_| true);
    assert_eq!(one, judge_all(&rules, 3, 2, &|_| true));
    assert_eq!(one.iter().map(|j| j.same_as).collect::<Vec<_>>(), [None, None, Some(0), Some(1), None]);
    assert_eq!(one.iter().map(|j| j.number).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    let some = judge_all(&rules, 1, 2, &|begun| begun < 1);
    assert_eq!(some.iter().map(|j| j.number).collect::<Vec<_>>(), [0, 2], "what was begun is told, repetitions included");
}

#[test]
fn rules_that_hold_are_proved() {
    let proved = [
        "matmul(matmul(a,b),c)==matmul(a,matmul(b,c))",
        "ewmul(a,ewadd(b,c))==ewadd(ewmul(a,b),ewmul(a,c))",
        "ewadd(matmul(a,b),matmul(c,b))==matmul(ewadd(a,c),b)",
        "transpose(matmul(a,b))==matmul(transpose(b),transpose(a))",
        "concat(1,ewadd(a,b),ewadd(c,d))==ewadd(concat(1,a,c),concat(1,b,d))",
        "split_1(1,matmul(a,concat(1,b,c)))==matmul(a,c)",
    ];
    for rule in proved {
        let judgement = judge(&only(rule.as_bytes()), 100);
        assert_eq!((judgement.trust, judgement.proofs), (Trust::Proved, judgement.families), "{rule}");
    }
    // Kernels and groups are fixed in every family.
    let rule = only(b"conv2d(1,1,0,0,concat(0,a,c),b)==concat(0,conv2d(1,1,0,0,a,b),conv2d(1,1,0,0,c,b))");
    let few = judge(&rule, 2);
    assert_eq!((few.trust, few.proofs), (Trust::ProvedInRange, 2));
    assert!(few.families > 2);
    assert!(judge(&rule, 0).trust == Trust::Tested);
}
