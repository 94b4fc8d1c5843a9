//! Files: what is accepted, and the errors for the others.

mod common;

use common::{STRIDE_1, bytes, conv, number, only, operator, read, rule};
use regraft_foreign::{Format, Location, MOST_BYTES, MOST_NODES, MOST_OUTPUTS, MOST_VARIABLES, algebra};
use regraft_ir::text::Position;

fn relu(at: i64) -> Vec<u8> {
    operator(8, &[(at, 0)], &[])
}

/// The algebra of the only rule.
fn shown(bytes: &[u8]) -> String {
    algebra(&only(bytes))
}

#[test]
fn protobuf_rules_are_read() {
    let activated = |code| operator(3, &[(-1, 0), (-2, 0)], &[(6, 1), (7, 1), (8, 0), (9, code)]);
    let fused = rule(&[conv((-1, 0), (-2, 0)), relu(0)], &[activated(2)], &[[1, 0, 0, 0]]);
    assert_eq!(shown(&fused), "relu(conv(a, b)) => conv.relu(a, b)");
    let cat = |a: (i64, i64), b: (i64, i64)| operator(12, &[a, b], &[(10, 2), (11, 1)]);
    let split = |at| operator(13, &[(at, 0)], &[(11, 1)]);
    let merged = rule(&[relu(-7), relu(-8)], &[cat((-7, 0), (-8, 0)), relu(0), split(1)], &[[0, 0, 2, 0], [1, 0, 2, 1]]);
    assert_eq!(shown(&merged), "relu(a) ; relu(b) => split1(relu(cat1/2(a, b))).0 ; split1(relu(cat1/2(a, b))).1");
    let both = [fused, merged].concat();
    assert_eq!(read(&both).iter().map(|r| r.number).collect::<Vec<_>>(), [0, 1]);
    // Fields of later versions are skipped.
    let later = [number(9, 5), both].concat();
    assert_eq!(Format::Taso.read(&later).map(|r| r.len()), Ok(2));
}

#[test]
fn every_operator_of_protobuf_files_has_its_parameters() {
    let window = [(4, 3), (5, 2), (6, 1), (7, 2), (8, 1), (9, 0)];
    let cases: [(Vec<u8>, &str); 20] = [
        (operator(4, &[(-1, 0)], &[]), "id(a)"),
        (operator(6, &[(-1, 0), (-2, 0)], &window), "max3x2[1x2 valid](a)"),
        (operator(7, &[(-1, 0)], &window), "avg3x2[1x2 valid](a)"),
        (operator(9, &[(-1, 0)], &[]), "sigmoid(a)"),
        (operator(10, &[(-1, 0)], &[]), "tanh(a)"),
        (operator(15, &[(-1, 0)], &[(10, 3), (12, 9 + 2)]), "t102(a)"),
        (operator(16, &[(-1, 0), (-2, 0)], &[]), "a + b"),
        (operator(17, &[(-1, 0), (-1, 0)], &[]), "a * a"),
        (operator(18, &[(-1, 0), (-2, 0)], &[(9, 3)]), "matmul.tanh(a, b)"),
        (operator(19, &[(-1, 0), (-2, 0)], &[]), "scale(a, b)"),
        (operator(20, &[(-1, 0)], &[(4, 3), (5, 3)]), "enlarge3x3(a)"),
        (operator(20, &[(-1, 0), (-2, 0)], &[]), "enlarge(a, b)"),
        (operator(21, &[(-1, 0)], &[(14, 2)]), "merge2(a)"),
        (operator(22, &[], &[]), "I"),
        (operator(23, &[], &[(4, 3), (5, 3)]), "Kid3x3"),
        (operator(24, &[], &[]), "One"),
        (operator(25, &[], &[(4, 2), (5, 3)]), "Kavg2x3"),
        (operator(28, &[(-1, 0), (-2, 0)], &[]), "a - b"),
        (operator(33, &[(-1, 0), (-2, 0)], &[]), "max(a, b)"),
        (operator(3, &[(-1, 0), (-2, 0)], &[(6, 2), (7, 1), (8, 0), (9, 1)]), "conv[2x1].sigmoid(a, b)"),
    ];
    for (message, expected) in cases {
        let file = rule(std::slice::from_ref(&message), std::slice::from_ref(&message), &[[0, 0, 0, 0]]);
        assert_eq!(shown(&file), format!("{expected} => {expected}"));
    }
}

#[test]
fn mistakes_in_protobuf_files_are_told() {
    let good = rule(&[relu(-1)], &[relu(-1)], &[[0, 0, 0, 0]]);
    let one = |source: &[Vec<u8>], target: &[Vec<u8>], outputs: &[[i64; 4]]| [good.clone(), rule(source, target, outputs)].concat();
    let out = [[0, 0, 0, 0]];
    let typeless = bytes(2, &[number(1, -1), number(2, 0)].concat());
    let no_result = [number(1, 8), bytes(2, &number(1, 0))].concat();
    let cases = [
        (one(&[relu(-1)], &[relu(-2)], &out), "the target has the variable input_2"),
        (one(&[relu(-1)], &[relu(-1)], &[]), "it has no outputs"),
        (one(&[relu(-1)], &[relu(-1)], &[[0, 0, 0, 0]; MOST_OUTPUTS + 1]), "it has 17 outputs"),
        (one(&[relu(-1)], &[relu(-1)], &[[1, 0, 0, 0]]), "output 0: no operator 1 comes before"),
        (one(&[relu(-1)], &[relu(-1)], &[[0, 0, 0, 1]]), "output 0: operator 0 has no result 1"),
        (one(&[relu(0)], &[relu(-1)], &out), "source operator 0: no operator 0 comes before"),
        (one(&[relu(-1)], &[operator(16, &[(-1, 0)], &[])], &out), "target operator 0: it takes 2 operands, not 1"),
        (one(&[typeless], &[relu(-1)], &out), "source operator 0: it has no type"),
        (one(&[relu(-1), no_result], &[relu(-1)], &out), "source operator 1: an operand without the number of its result"),
        (one(&[operator(99, &[], &[])], &[relu(-1)], &out), "there is no operator type 99"),
        (one(&[operator(-3, &[], &[])], &[relu(-1)], &out), "there is no operator type -3"),
        (one(&[operator(3, &[(-1, 0), (-2, 0)], &STRIDE_1[..3])], &[relu(-1)], &out), "its parameter 9 (activation) is missing"),
        (one(&[operator(3, &[(-1, 0), (-2, 0)], &[(6, 1), (7, 1), (8, 4), (9, 0)])], &[relu(-1)], &out), "there is no padding 4"),
        (one(&[operator(3, &[(-1, 0), (-2, 0)], &[(6, 0), (7, 1), (8, 0), (9, 0)])], &[relu(-1)], &out), "a window or stride of 0"),
        (one(&[operator(12, &[(-1, 0), (-2, 0)], &[(10, 2), (11, 2)])], &[relu(-1)], &out), "axis 2 of 2 axes"),
        (one(&[operator(12, &[(-1, 0), (-2, 0)], &[(11, -1)])], &[relu(-1)], &out), "its parameter 11 (axis) is -1"),
        (one(&[operator(15, &[(-1, 0)], &[(10, 2), (12, 3)])], &[relu(-1)], &out), "[1, 1] is no permutation of axes"),
        (one(&[operator(21, &[(-1, 0)], &[(14, 0)])], &[relu(-1)], &out), "a count of 0"),
        ([good.clone(), vec![0x0a, 0x7f, 1, 2]].concat(), "it is 127 bytes long, 2 are left"),
        ([good.clone(), bytes(1, &[0xff; 3])].concat(), "this is no protobuf"),
        ([good.clone(), vec![0xff]].concat(), "this is no protobuf"),
    ];
    for (file, part) in cases {
        let error = Format::Taso.read(&file).expect_err(part);
        assert!(error.message.contains(part), "`{part}` is not in `{error}`");
        assert_eq!((error.rule, error.location, error.hint.is_empty()), (Some(1), Location::Byte(good.len()), false), "{error}");
    }
}

#[test]
fn terms_of_both_text_formats_are_read() {
    let cases = [
        ("(ewadd ?x (ewmul ?y ?x))=>(smul (tanh ?x) ?y)", "a + (b * a) => scale(tanh(a), b)"),
        ("(conv2d 1 2 1 3 ?x ?w) => (conv2d 1 1 0 2 ?x (enlarge ?w ?w))", "conv[1x2 valid].tanh(a, b) => conv.relu(a, enlarge(b, b))"),
        ("(poolavg ?x 3 3 1 1 0 0)=>(poolmax ?x 2 2 2 2 1 2)", "avg3x3(a) => max2x2[2x2 valid].relu(a)"),
        ("(concat3 1 4 ?a ?b ?c)=>(concat 1 4 ?a (concat 1 4 ?b ?c))", "cat1/4(a, b, c) => cat1/4(a, cat1/4(b, c))"),
        ("(split_1 (split 0 ?x))=>(dropout (sigmoid ?x))", "split0(a).1 => id(sigmoid(a))"),
        ("(transpose ?x 1_0 0)=>(merge ?x 4)", "t(a) => merge4(a)"),
        ("(matmul 0 ?x Imatmul)=>(ewmul ?x Iewmul)", "a @ I => a * One"),
        ("(conv2d 1 1 0 0 ?x (Cpool 3 3))=>(conv2d 1 1 0 0 ?x (Iconv 1 3))", "conv(a, Kavg3x3) => conv(a, Kid1x3)"),
        (" ewadd ( x , y ) ==\n ewmul(y,x)", "a + b => b * a"),
        ("concat(0,x,y,z)==split_0(2,relu(x))", "cat0(a, b, c) => split2(relu(a)).0"),
        ("conv2d(1,1,0,2,x,enlarge(3,5,w))==poolmax(3,3,1,1,0,x)", "conv.relu(a, enlarge3x5(b)) => max3x3(a)"),
        ("smul(transpose(x),s)==matmul(x,Imatmul)", "scale(t(a), b) => a @ I"),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(text.as_bytes()), expected, "{text}");
    }
}

#[test]
fn pairs_are_recognized_by_their_variables() {
    let pair = "(relu ?a)=>(split_0 (split 1 (relu (concat 1 2 ?a ?b))))\n(relu ?b)=>(split_1 (split 1 (relu (concat 1 2 ?a ?b))))\n";
    let plain = "(relu ?a)=>(relu ?a)\n\n(tanh ?b)=>(tanh ?b)";
    assert_eq!(Format::of([pair, plain].concat().as_bytes()), Format::Pairs);
    assert_eq!(Format::of(plain.as_bytes()), Format::Rules);
    assert_eq!(Format::of(b"relu(a)==relu(a)"), Format::Equations);
    assert_eq!(Format::of(&rule(&[relu(-1)], &[relu(-1)], &[[0, 0, 0, 0]])), Format::Taso);
    let expected = "relu(a) ; relu(b) => split1(relu(cat1/2(a, b))).0 ; split1(relu(cat1/2(a, b))).1";
    assert_eq!(shown(pair.as_bytes()), expected);
    assert_eq!(read(plain.as_bytes()).len(), 2);
    assert_eq!(
        Format::Pairs.read(plain.as_bytes()).map(|r| r.iter().map(algebra).collect::<Vec<_>>()),
        Ok(vec!["relu(a) ; tanh(b) => relu(a) ; tanh(b)".into()])
    );
    let odd = Format::Pairs.read([pair, "(relu ?a)=>(relu ?a)"].concat().as_bytes()).expect_err("a line is left");
    assert_eq!((odd.to_string().as_str(), odd.hint.is_empty()), ("3:21: rule 1: this line has no partner", false));
}

#[test]
fn mistakes_in_texts_are_told() {
    let deep = format!("{}x{}=>?x", "(relu ".repeat(60), ")".repeat(60));
    let many: String = (0..=MOST_VARIABLES).map(|n| format!(" ?v{n}")).collect();
    let chain = (0..MOST_NODES).fold("?x".to_owned(), |t, _| format!("(ewadd {t} ?x)"));
    assert!(chain.len() < MOST_BYTES);
    let cases = [
        ("(relu ?x)=>(relu ?y)", "1:21: rule 0: the target has the variable `?y`, the source has not"),
        ("(relu ?x)=>(relu ?x)\n(relu ?x)", "2:10: rule 1: `=>` is expected, not the end"),
        ("(relu ?x)=>", "1:12: rule 0: a name or a number is expected, not the end"),
        ("(relu ?x)=>7", "1:12: rule 0: a term or a variable is expected"),
        ("(relu ?x)=>(relu ?x) )", "1:22: rule 0: the rule has ended before"),
        ("(relu ?x=>?x", "1:9: rule 0: a name or a number is expected, not `=`"),
        ("(rleu ?x)=>?x", "1:1: rule 0: `rleu`: there is no such operator"),
        ("(relu ?x ?y)=>?x", "1:1: rule 0: `relu`: it takes 1 operands, not 2"),
        ("(matmul ?x ?y)=>?x", "1:1: rule 0: `matmul`: its activation is no number"),
        ("(matmul 9 ?x ?y)=>?x", "1:1: rule 0: `matmul`: there is no activation 9"),
        ("(conv2d 1 1 0)=>?x", "1:1: rule 0: `conv2d`: its activation is missing"),
        ("(relu 5)=>?x", "1:1: rule 0: `relu`: its operand is no term"),
        ("(concat3 1 4 ?x ?y)=>?x", "1:1: rule 0: `concat3`: it takes 3 operands, not 2"),
        ("(concat -1 4 ?x ?y)=>?x", "1:1: rule 0: `concat`: its axis is -1"),
        ("(split_0 ?x)=>?x", "1:1: rule 0: `split_0`: its operand is no split"),
        ("(transpose ?x a_b 0)=>?x", "1:1: rule 0: `transpose`: there is no permutation `a_b`"),
        ("(merge ?x 2 ?y)=>?x", "1:1: rule 0: `merge`: it has too many arguments"),
        ("relu(x)==relu(x", "1:16: rule 0: `,` is expected, not the end"),
        ("relu(x)==relu(x)relu(x)=relu(x)", "1:24: rule 1: `==` is expected, not `=`"),
        ("relu(x)==\ntan(x)", "2:1: rule 0: `tan`: there is no such operator"),
        ("relu(x)==enlarge(0,3,x)", "1:10: rule 0: `enlarge`: a window or stride of 0"),
        ("relu(x)==3", "1:10: rule 0: a term is expected"),
        (&deep, "terms are nested more than 48 deep"),
        (&deep.replace("(relu ", "relu(").replace("=>?x", "==x"), "terms are nested more than 48 deep"),
        (&format!("(concat5 1 4{many})=>?v0"), "a rule has at most 16 variables"),
        (&format!("{chain}=>?x"), "terms are nested"),
    ];
    for (text, part) in cases {
        let error = Format::of(text.as_bytes()).read(text.as_bytes()).expect_err(part);
        assert!(error.to_string().contains(part), "`{part}` is not in `{error}`");
        assert!(!error.hint.is_empty(), "{error}");
    }
}

#[test]
fn files_that_are_no_rules_are_refused() {
    for (format, bytes, part) in [
        (Format::Rules, b"".as_slice(), "there are no rules in it"),
        (Format::Equations, b" \n", "there are no rules in it"),
        (Format::Taso, b"", "there are no rules in it"),
        (Format::Rules, b"(relu ?x)\xff=>?x", "this is no UTF-8 text"),
    ] {
        let error = format.read(bytes).expect_err(part);
        assert!(error.rule.is_none() && error.message.contains(part) && !error.hint.is_empty(), "{error}");
    }
    let large = Format::Taso.read(&vec![b' '; MOST_BYTES + 1]).expect_err("too large");
    assert!(large.message.contains("bytes"), "{large}");
}

/// Whether a location is inside the file, or at its end.
fn inside(location: Location, file: &[u8]) -> bool {
    match location {
        Location::Byte(at) => at <= file.len(),
        Location::Text(Position { line, column }) => line >= 1 && column >= 1 && line + column <= file.len() + 2,
    }
}

#[test]
fn damage_is_an_error_with_a_location_or_another_rule() {
    let cat = operator(12, &[(-1, 0), (-2, 0)], &[(10, 4), (11, 1)]);
    let file = rule(&[conv((-1, 0), (-2, 0)), cat], &[conv((-2, 0), (-1, 0)), relu(0)], &[[0, 0, 1, 0]]);
    let texts = ["(concat 1 2 (relu ?x) ?y)=>(split_0 (split 1 ?x))", "conv2d(1,1,0,2,x,y)==smul(x,y)"];
    for original in [file.as_slice(), texts[0].as_bytes(), texts[1].as_bytes()] {
        for at in 0..original.len() {
            for byte in [0, 1, b'(', b')', b',', 0x7f, 0x80, 0xff, original[at] ^ 1] {
                let mut damaged = original.to_vec();
                damaged[at] = byte;
                for format in [Format::of(&damaged), Format::Taso, Format::Pairs, Format::Equations] {
                    match format.read(&damaged) {
                        Ok(rules) => assert!(rules.iter().all(|r| algebra(r).contains(" => ")), "{format:?} {damaged:?}"),
                        Err(error) => assert!(!error.message.is_empty() && inside(error.location, &damaged), "{error} {damaged:?}"),
                    }
                }
            }
        }
    }
}
