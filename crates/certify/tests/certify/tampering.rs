//! Any changed byte in a certificate or a model is reported.

use std::path::Path;

use crate::models::{Case, replayed};
use regraft_certify::{Certificate, CertifyError, Finding, Hash, is_certificate};

/// Positions to change in longer files: the first and last ones, and some in between.
const POSITIONS: usize = 240;
/// Bit masks to flip, in turn.
const MASKS: [u8; 4] = [0x01, 0x80, 0x20, 0xff];

/// The verdicts after changing each byte at some positions in turn. The file ends up unchanged.
fn flipped(path: &Path, mut judge: impl FnMut(usize)) {
    let bytes = std::fs::read(path).expect("readable");
    let edge = POSITIONS / 4;
    let inner = (bytes.len() / (POSITIONS / 2)).max(1);
    let at_edge = |at: &usize| *at < edge || *at + edge >= bytes.len();
    for (turn, at) in (0..bytes.len()).filter(|at| at_edge(at) || at % inner == 0).enumerate() {
        let mut changed = bytes.clone();
        changed[at] ^= MASKS[turn % MASKS.len()];
        std::fs::write(path, &changed).expect("writable");
        judge(at);
    }
    std::fs::write(path, &bytes).expect("writable");
}

#[test]
fn a_changed_byte_of_the_result_is_noticed() {
    for external in [false, true] {
        let case = Case::scaled(external);
        let files: &[&str] = if external { &["b.onnx", "b.onnx.data"] } else { &["b.onnx"] };
        for file in files {
            flipped(&case.path(file), |at| match case.certificate.verify(&case.path("a.onnx"), &case.path("b.onnx")) {
                Ok(Finding::Tampered(why)) => assert!(why.contains("the result is not the model that was certified"), "{file} {at}: {why}"),
                // The name of the data file is in the model.
                Err(CertifyError::Read { .. }) if external => {}
                other => panic!("byte {at} of {file}: {other:?}"),
            });
        }
        assert!(matches!(case.verify(), Finding::Replayed(_)));
    }
}

#[test]
fn a_changed_byte_of_the_input_is_noticed() {
    for external in [false, true] {
        let case = Case::scaled(external);
        let files: &[&str] = if external { &["a.onnx", "a.onnx.data"] } else { &["a.onnx"] };
        for file in files {
            flipped(&case.path(file), |at| match case.certificate.verify(&case.path("a.onnx"), &case.path("b.onnx")) {
                Ok(Finding::OtherInput(why)) => assert!(why.contains("another input"), "{file} {at}: {why}"),
                Err(CertifyError::Read { .. }) if external => {}
                other => panic!("byte {at} of {file}: {other:?}"),
            });
        }
    }
}

#[test]
fn a_changed_byte_of_the_certificate_is_noticed() {
    let case = Case::scaled(false);
    let text = case.certificate.to_text().into_bytes();
    for at in 0..text.len() {
        let mut changed = text.clone();
        changed[at] ^= MASKS[at % MASKS.len()];
        match Certificate::parse(&changed) {
            Ok(Err(broken)) => assert!(broken.line > 0 && !broken.why.is_empty(), "byte {at}: {broken}"),
            other => panic!("byte {at}: {other:?}"),
        }
    }
    for end in 0..text.len() {
        assert!(matches!(Certificate::parse(&text[..end]), Ok(Err(_))), "cut at {end}");
    }
    let longer = [text.as_slice(), b"\n"].concat();
    assert!(matches!(Certificate::parse(&longer), Ok(Err(_))));
}

#[test]
fn a_certificate_reads_back_as_it_was_written() {
    let case = Case::scaled(false);
    let text = case.certificate.to_text();
    assert!(is_certificate(text.as_bytes()) && !is_certificate(b"regraft"));
    let read = Certificate::parse(text.as_bytes()).expect("of this layout").expect("as it was written");
    assert_eq!(read, case.certificate);
    assert_eq!(read.to_text(), text);
    assert_eq!(read.steps(), 3);
}

/// A text with a valid seal, as a knowing forger would write it.
fn sealed(body: &str) -> Vec<u8> {
    format!("{body}seal {}\n", Hash::of(body.as_bytes())).into_bytes()
}

#[test]
fn a_forged_certificate_proves_nothing() {
    let case = Case::scaled(false);
    let text = case.certificate.to_text();
    let body = &text[..text.rfind("seal ").expect("a seal")];
    assert_eq!(sealed(body), text.as_bytes());
    for (old, new, want) in [
        // Nodes other than those that were written.
        ("v = Mul(", "v = Div(", "the steps lead to another model"),
        ("let n", "guard nothing\nlet n", ""),
        ("u = MatMul(", "u = Unknown(", "fits nowhere"),
        ("f32[6,5]", "f32[5,6]", "fits nowhere"),
        ("as n", "as n9", "fits nowhere"),
        ("replaces n", "replaces n77", "fits nowhere"),
    ] {
        let forged = body.replacen(old, new, 1);
        assert_ne!(forged, body, "{old}");
        let certificate = match Certificate::parse(&sealed(&forged)) {
            Ok(Ok(certificate)) => certificate,
            other => panic!("{old}: {other:?}"),
        };
        let finding = certificate.verify(&case.path("a.onnx"), &case.path("b.onnx")).expect("readable");
        match finding {
            Finding::Tampered(why) => assert!(!want.is_empty() && why.contains(want), "{old}: {why}"),
            Finding::Replayed(replay) => match &replay.arrival {
                Ok(()) => assert_eq!(want, "", "{old}"),
                Err(why) => assert!(!want.is_empty() && why.contains(want), "{old}: {why}"),
            },
            Finding::OtherInput(why) => panic!("{old}: {why}"),
        }
    }
    for (old, new, line) in [("tool ", "tools ", 2), ("input ", "input x", 3), ("let n", "let m", 8), ("replaces n", "replaces m", 7)] {
        let broken = Certificate::parse(&sealed(&body.replacen(old, new, 1))).expect("of this layout").expect_err("no certificate");
        assert_eq!(broken.line, line, "{old}: {broken}");
    }
    let other = Certificate::parse(&sealed(&body.replacen("certificate 3", "certificate 2", 1)));
    assert!(matches!(other, Err(CertifyError::Version { found }) if found == "2"));
}

#[test]
fn a_result_that_the_steps_do_not_lead_to_is_not_certified() {
    use regraft_onnx::Model;
    use regraft_onnx::proto::ModelProto;
    let case = Case::scaled(false);
    let input = Model::read(case.path("a.onnx")).expect("a model");
    let written = Model::read(case.path("b.onnx")).expect("a model").proto().clone();
    type Change = fn(&mut ModelProto);
    let changes: [(&str, Change, &str); 5] = [
        ("nothing", |_| {}, ""),
        ("the producer", |m| m.producer_name = Some("somebody".into()), ""),
        (
            "an operator",
            |m| {
                m.graph
                    .get_or_insert_default()
                    .node
                    .iter_mut()
                    .for_each(|n| n.op_type = n.op_type.replace("Relu".into()).map(|o| if o == "Relu" { "Abs".into() } else { o }))
            },
            "Abs instead of Relu",
        ),
        ("a folded constant, by a thousandth", |m| scale(m, 1.001), "another constant"),
        ("the opset", |m| m.opset_import[0].version = Some(18), "the opset versions"),
    ];
    for (what, change, want) in changes {
        let mut model = written.clone();
        change(&mut model);
        let output = Model::from_proto(model).expect("a model");
        let replay = replayed(case.certificate.replay(&input, &output).expect("comparable"));
        match &replay.arrival {
            Ok(()) => assert_eq!(want, "", "{what}"),
            Err(why) => assert!(!want.is_empty() && why.contains(want), "{what}: {why}"),
        }
    }
}

/// Scales the first element of the last initializer.
fn scale(model: &mut regraft_onnx::proto::ModelProto, factor: f32) {
    let Some(tensor) = model.graph.get_or_insert_default().initializer.last_mut() else { return };
    let mut raw = tensor.raw_data.take().map(|raw| raw.to_vec()).unwrap_or_default();
    let first = f32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]) * factor;
    raw[..4].copy_from_slice(&first.to_le_bytes());
    tensor.raw_data = Some(raw.into());
}

#[test]
fn digests_are_those_of_the_paper_and_read_back() {
    let empty = Hash::of(b"");
    assert_eq!(empty.to_string(), "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
    assert_eq!(Hash::of(b"abc").to_string(), "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85");
    assert_eq!(Hash::parse(&empty.to_string()), Some(empty));
    let upper = empty.to_string().to_uppercase();
    for wrong in ["", "af", &"g".repeat(64), &"é".repeat(32), upper.as_str()] {
        assert_eq!(Hash::parse(wrong), None, "{wrong}");
    }
}
