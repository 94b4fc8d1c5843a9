//! Gemm, Einsum and block moves against their definitions.

use std::collections::BTreeMap;

use regraft_ir::{Attr, Bindings, DType, Dim, Tensor, TensorType, Value};

use crate::common::{Random, bools, eval, f32s, float, ints, op, round_trip};
use crate::naive::{at, check_symbolic, close, counted, run, signed, tensor, typed};

#[test]
fn gemm_matches_its_formula() {
    let mut random = Random::new(21);
    for case in 0..200 {
        let [m, k, n] = [0; 3].map(|_| 1 + random.below(9) as i64);
        let (trans_a, trans_b) = (random.below(2) == 1, random.below(2) == 1);
        let (alpha, beta) = ([1.0, 0.5, -2.0][random.below(3)], [1.0, 0.25, 0.0][random.below(3)]);
        let a = tensor(&mut random, &if trans_a { [k, m] } else { [m, k] });
        let b = tensor(&mut random, &if trans_b { [n, k] } else { [k, n] });
        let addend = [None, Some(vec![m, n]), Some(vec![n]), Some(vec![m, 1]), Some(vec![]), Some(vec![1])][random.below(6)].clone();
        let c = addend.map(|shape| tensor(&mut random, &shape));
        let beta = if c.is_some() { beta } else { 1.0 };
        let attrs = [("alpha", float(alpha)), ("beta", float(beta)), ("trans_a", Attr::Bool(trans_a)), ("trans_b", Attr::Bool(trans_b))];
        let op = op("Gemm", &attrs);
        let shape = vec![m as usize, n as usize];
        let index = c.as_ref().map(|c| c.broadcast_index(&shape));
        let want = Tensor::from_fn(shape, |i| {
            let (row, column) = (i[0] as i64, i[1] as i64);
            let term = |l: i64| {
                let x = at(&a, &if trans_a { [l, row] } else { [row, l] }).unwrap();
                x * at(&b, &if trans_b { [column, l] } else { [l, column] }).unwrap()
            };
            let added = c.as_ref().zip(index.as_ref()).map_or(0.0, |(c, at)| c.data[at[i[0] * n as usize + i[1]]]);
            f64::from(alpha) * (0..k).map(term).sum::<f64>() + f64::from(beta) * added
        });
        let mut operands = vec![&a, &b];
        operands.extend(&c);
        close(&run(&op, &operands).unwrap(), &want, 1e-12, &format!("case {case}: {op:?}"));
        let shapes: Vec<Vec<i64>> = operands.iter().map(|t| signed(&t.shape)).collect();
        check_symbolic(&op, &shapes, &[usize::from(trans_a)]);
        assert_eq!(round_trip(&op, &shapes.iter().map(|s| f32s(s)).collect::<Vec<_>>()), (7..=21).collect::<Vec<_>>());
    }
}

#[test]
fn gemm_refuses_what_does_not_fit() {
    let op = op("Gemm", &[("alpha", float(1.0)), ("beta", float(1.0)), ("trans_a", Attr::Bool(false)), ("trans_b", Attr::Bool(false))]);
    for types in [
        vec![f32s(&[2, 3]), f32s(&[4, 5])],
        vec![f32s(&[2, 3]), f32s(&[3, 5]), f32s(&[2])],
        vec![f32s(&[1, 3]), f32s(&[3, 5]), f32s(&[2, 5])],
        vec![f32s(&[2, 3]), f32s(&[3, 5]), f32s(&[1, 2, 5])],
        vec![f32s(&[2, 3, 1]), f32s(&[3, 5])],
        vec![typed(&["2", "K"]), f32s(&[3, 5])],
        vec![f32s(&[2, 3]).with_dtype(DType::I32), f32s(&[3, 5]).with_dtype(DType::I32)],
    ] {
        assert!(op.infer(&types).is_err(), "{types:?}");
    }
}

/// Sizes of the labels in the Einsum cases.
fn size_of(label: char) -> i64 {
    i64::from(u32::from(label.to_ascii_lowercase()) - u32::from('a')) % 4 + 1
}

#[test]
fn einsum_matches_its_definition() {
    let mut random = Random::new(22);
    for (equation, explicit) in [
        ("ij,jk->ik", "ij,jk->ik"),
        ("bhid, bhjd -> bhij", "bhid,bhjd->bhij"),
        ("bhij,bhjd->bihd", "bhij,bhjd->bihd"),
        ("ij", "ij->ij"),
        ("ji", "ji->ij"),
        ("cdB->B", "cdB->B"),
        ("ii", "ii->"),
        ("iji->ji", "iji->ji"),
        ("ijj,jk->k", "ijj,jk->k"),
        ("i,j->ij", "i,j->ij"),
        ("b,b", "b,b->"),
        ("bc,k->b", "bc,k->b"),
        ("ab,bc,cd->ad", "ab,bc,cd->ad"),
        ("ab,ac,ad->bcd", "ab,ac,ad->bcd"),
        ("abc,c,b,a", "abc,c,b,a->"),
        ("cd,cd->cd", "cd,cd->cd"),
        (",ab->ba", ",ab->ba"),
        ("aB,Bc", "aB,Bc->ac"),
    ] {
        let (left, right) = explicit.split_once("->").unwrap();
        let labels: Vec<Vec<char>> = left.split(',').map(|o| o.chars().collect()).collect();
        let operands: Vec<Tensor<f64>> =
            labels.iter().map(|l| tensor(&mut random, &l.iter().map(|c| size_of(*c)).collect::<Vec<_>>())).collect();
        let mut inner: Vec<char> = labels.iter().flatten().copied().filter(|c| !right.contains(*c)).collect();
        inner.sort_unstable();
        inner.dedup();
        let shape: Vec<usize> = right.chars().map(|c| size_of(c) as usize).collect();
        let want = Tensor::from_fn(shape, |index| {
            let mut place: BTreeMap<char, i64> = right.chars().zip(signed(index)).collect();
            let mut sum = 0.0;
            for point in crate::naive::indices(&inner.iter().map(|c| size_of(*c)).collect::<Vec<_>>()) {
                place.extend(inner.iter().copied().zip(point));
                let factor = |(l, t): (&Vec<char>, &Tensor<f64>)| at(t, &l.iter().map(|c| place[c]).collect::<Vec<_>>()).unwrap();
                sum += labels.iter().zip(&operands).map(factor).product::<f64>();
            }
            sum
        });
        let written = op("Einsum", &[("equation", Attr::Str(equation.into()))]);
        let operands: Vec<&Tensor<f64>> = operands.iter().collect();
        close(&run(&written, &operands).unwrap(), &want, 1e-12, equation);
        let types: Vec<TensorType> = operands.iter().map(|t| f32s(&signed(&t.shape))).collect();
        assert_eq!(round_trip(&op("Einsum", &[("equation", Attr::Str(explicit.into()))]), &types), (12..=21).collect::<Vec<_>>());
    }
}

#[test]
fn einsum_refuses_what_does_not_fit() {
    for (equation, shapes) in [
        ("ij,jk->ik", vec![vec![2, 3], vec![4, 5]]),
        ("ij,jk->ik", vec![vec![2, 3]]),
        ("ij->i", vec![vec![2, 3, 4]]),
        ("ij,ij->ij", vec![vec![1, 3], vec![2, 3]]),
        ("i->ii", vec![vec![2]]),
        ("i->j", vec![vec![2]]),
        ("...i->...", vec![vec![2, 3]]),
    ] {
        let op = op("Einsum", &[("equation", Attr::Str(equation.into()))]);
        assert!(op.infer(&shapes.iter().map(|s| f32s(s)).collect::<Vec<_>>()).is_err(), "{equation}");
    }
}

/// Answers of ONNX Runtime on `1, 2, ..`.
#[test]
fn block_moves_answer_as_onnx_runtime() {
    let depth = |mode: &str| op("DepthToSpace", &[("blocksize", Attr::Int(2)), ("mode", Attr::Str(mode.into()))]);
    let space = op("SpaceToDepth", &[("blocksize", Attr::Int(2))]);
    for (op, from, to, want, first) in [
        (depth("DCR"), [1, 8, 1, 2], [1, 2, 2, 4], [1, 5, 2, 6, 9, 13, 10, 14, 3, 7, 4, 8, 11, 15, 12, 16], 7),
        (depth("CRD"), [1, 8, 1, 2], [1, 2, 2, 4], [1, 3, 2, 4, 5, 7, 6, 8, 9, 11, 10, 12, 13, 15, 14, 16], 11),
        (space, [1, 2, 2, 4], [1, 8, 1, 2], [1, 3, 9, 11, 2, 4, 10, 12, 5, 7, 13, 15, 6, 8, 14, 16], 7),
    ] {
        let want = Tensor::new(to.to_vec(), want.iter().map(|v| f64::from(*v)).collect());
        close(&run(&op, &[&counted(&from)]).unwrap(), &want, 0.0, &format!("{op:?}"));
        assert_eq!(round_trip(&op, &[f32s(&signed(&from))]), (first..=21).collect::<Vec<_>>());
    }
}

#[test]
fn space_to_depth_undoes_depth_to_space() {
    let mut random = Random::new(23);
    for (shape, block) in [(vec![2, 12, 3, 2], 2), (vec![1, 9, 2, 3], 3), (vec![2, 5, 2, 2], 1), (vec![0, 4, 2, 2], 2)] {
        let x = tensor(&mut random, &shape);
        let there = op("DepthToSpace", &[("blocksize", Attr::Int(block)), ("mode", Attr::Str("DCR".into()))]);
        let back = op("SpaceToDepth", &[("blocksize", Attr::Int(block))]);
        let middle = run(&there, &[&x]).unwrap();
        close(&run(&back, &[&middle]).unwrap(), &x, 0.0, &format!("{shape:?} by {block}"));
    }
    let open = typed(&["N", "12", "H", "W"]);
    let there = op("DepthToSpace", &[("blocksize", Attr::Int(2)), ("mode", Attr::Str("CRD".into()))]);
    let back = op("SpaceToDepth", &[("blocksize", Attr::Int(2))]);
    let middle = there.infer(std::slice::from_ref(&open)).unwrap();
    assert_eq!(middle[0].to_string(), "f32[N,3,2*H,2*W]");
    assert_eq!(back.infer(&middle).unwrap(), std::slice::from_ref(&open));
    assert!(back.infer(&[open]).is_err(), "odd heights are possible");
    assert!(back.infer(&[f32s(&[1, 1, 3, 4])]).is_err());
    assert!(there.infer(&[f32s(&[1, 6, 3, 4])]).is_err());
}

#[test]
fn upsample_repeats_elements_of_any_kind() {
    let mut random = Random::new(24);
    for (shape, scales) in [
        (vec![1, 2, 3], vec![1, 1, 2]),
        (vec![2, 3, 2, 3], vec![1, 1, 2, 3]),
        (vec![2, 2], vec![3, 2]),
        (vec![1, 2, 2, 1, 2], vec![1, 1, 2, 2, 4]),
        (vec![2, 3], vec![1, 1]),
    ] {
        let x = tensor(&mut random, &shape);
        let op = op("Upsample", &[("scales", Attr::Ints(scales.clone()))]);
        let out = shape.iter().zip(&scales).map(|(d, s)| (d * s) as usize).collect();
        let want = Tensor::from_fn(out, |i| at(&x, &signed(i).iter().zip(&scales).map(|(i, s)| i / s).collect::<Vec<_>>()).unwrap());
        close(&run(&op, &[&x]).unwrap(), &want, 0.0, &format!("{shape:?} by {scales:?}"));
        assert_eq!(round_trip(&op, &[f32s(&shape)]), (7..=21).collect::<Vec<_>>());
    }
    let op = op("Upsample", &[("scales", Attr::Ints(vec![1, 2]))]);
    let of = |dtype: DType, value: Value<f64>| eval(&op, &[TensorType::new(dtype, [1, 2])], &[value], &Bindings::new()).unwrap().remove(0);
    assert_eq!(of(DType::I64, ints(&[1, 2], &[3, 4])), ints(&[1, 4], &[3, 3, 4, 4]));
    assert_eq!(of(DType::Bool, bools(&[1, 2], &[true, false])), bools(&[1, 4], &[true, true, false, false]));
    assert_eq!(op.infer(&[TensorType::new(DType::F32, [Dim::symbol("N"), Dim::symbol("L")])]).unwrap()[0].to_string(), "f32[N,2*L]");
    assert!(op.infer(&[f32s(&[1, 2, 3])]).is_err());
}
