//! What softmax and reductions compute.

mod common;

use std::collections::BTreeMap;

use common::table::{INF, NAN, axes, b, case, check, i, int, position, r, real, truth};
use common::{Random, eval, f32s, ints, op, reals};
use regraft_ir::{Attr, Bindings, DType, Value};

#[test]
fn softmax_and_reductions_mean_what_they_say() {
    let grid = || (DType::F64, reals(&[2, 3], &[1.0, -2.0, 3.0, 4.0, 5.0, -6.0]));
    let cube = || (DType::F64, reals(&[2, 2, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]));
    let none = || (DType::F64, reals(&[2, 0], &[]));
    let last = axes(&[1], false);
    let z = (0.5f64).exp() + 1.0;
    let lse = |a: f64, b: f64| (a.exp() + b.exp()).ln();
    check(vec![
        case(
            "Softmax",
            &[("axis", Attr::Int(1))],
            &[(DType::F64, reals(&[1, 2], &[1000.5, 1000.0]))],
            reals(&[1, 2], &[0.5f64.exp() / z, 1.0 / z]),
        ),
        case(
            "Softmax",
            &[("axis", Attr::Int(0))],
            &[(DType::F64, reals(&[2, 2], &[0.5, 7.0, 0.0, 7.0]))],
            reals(&[2, 2], &[0.5f64.exp() / z, 0.5, 1.0 / z, 0.5]),
        ),
        case("Softmax", &[("axis", Attr::Int(0))], &[r(&[-INF, 0.0])], real(&[0.0, 1.0])),
        case("LogSoftmax", &[("axis", Attr::Int(0))], &[r(&[-1000.0, 1000.0])], real(&[-2000.0, 0.0])),
        case("ReduceSum", &axes(&[0, 1], true), &[grid()], reals(&[1, 1], &[5.0])),
        case("ReduceSum", &axes(&[0], false), &[grid()], real(&[5.0, 3.0, -3.0])),
        case("ReduceSum", &axes(&[0, 2], false), &[cube()], real(&[14.0, 22.0])),
        case("ReduceSum", &axes(&[1], true), &[cube()], reals(&[2, 1, 2], &[4.0, 6.0, 12.0, 14.0])),
        case("ReduceSum", &axes(&[], false), &[cube()], reals(&[2, 2, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])),
        case("ReduceMean", &last, &[grid()], real(&[2.0 / 3.0, 1.0])),
        case("ReduceMax", &last, &[grid()], real(&[3.0, 5.0])),
        case("ReduceMax", &axes(&[0], false), &[r(&[1.0, NAN, 2.0])], reals(&[], &[NAN])),
        case("ReduceMin", &last, &[grid()], real(&[-2.0, -6.0])),
        case("ReduceProd", &last, &[grid()], real(&[-6.0, -120.0])),
        case("ReduceL1", &last, &[grid()], real(&[6.0, 15.0])),
        case("ReduceL2", &last, &[grid()], real(&[14f64.sqrt(), 77f64.sqrt()])),
        case("ReduceLogSum", &last, &[grid()], real(&[2f64.ln(), 3f64.ln()])),
        case("ReduceLogSumExp", &axes(&[0], false), &[grid()], real(&[lse(1.0, 4.0), lse(-2.0, 5.0), lse(3.0, -6.0)])),
        case("ReduceLogSumExp", &axes(&[0], true), &[r(&[-1e300, 1e300])], real(&[1e300])),
        case("ReduceLogSumExp", &axes(&[0], true), &[r(&[-INF, -INF])], real(&[-INF])),
        case("ReduceSumSquare", &last, &[grid()], real(&[14.0, 77.0])),
        case("ReduceSum", &last, &[none()], real(&[0.0, 0.0])),
        case("ReduceProd", &last, &[none()], real(&[1.0, 1.0])),
        case("ReduceMax", &last, &[none()], real(&[-INF, -INF])),
        case("ReduceMin", &last, &[none()], real(&[INF, INF])),
        case("ReduceMean", &last, &[none()], real(&[NAN, NAN])),
        case("ReduceLogSumExp", &last, &[none()], real(&[-INF, -INF])),
        case("ReduceSum", &axes(&[0], false), &[none()], reals(&[0], &[])),
        case("ReduceSum", &axes(&[0], true), &[i(DType::I32, &[i64::from(i32::MAX), 1])], int(&[i64::from(i32::MIN)])),
        case("ReduceMean", &axes(&[0], true), &[i(DType::I64, &[-3, -4])], int(&[-3])),
        case("ReduceMax", &axes(&[0], true), &[i(DType::U64, &[-1, 3])], int(&[-1])),
        case("ReduceMin", &axes(&[0], true), &[i(DType::U8, &[])], int(&[255])),
        case("ReduceL1", &axes(&[0], true), &[i(DType::I64, &[-3, 4])], int(&[7])),
        case("ReduceSumSquare", &axes(&[0], true), &[i(DType::I32, &[-3, 4])], int(&[25])),
        case("ReduceMax", &axes(&[0], true), &[b(&[false, true])], truth(&[true])),
        case("ReduceMin", &axes(&[0], true), &[b(&[false, true])], truth(&[false])),
        case("ArgMax", &position(1, true, false), &[grid()], ints(&[2, 1], &[2, 1])),
        case("ArgMax", &position(0, false, false), &[grid()], int(&[1, 1, 0])),
        case("ArgMin", &position(1, false, false), &[grid()], int(&[1, 2])),
        case("ArgMax", &position(0, false, false), &[i(DType::I32, &[5, 7, 7])], ints(&[], &[1])),
        case("ArgMax", &position(0, false, true), &[i(DType::I32, &[5, 7, 7])], ints(&[], &[2])),
        case("ArgMin", &position(0, true, true), &[r(&[0.0, 1.0, -0.0])], int(&[2])),
    ]);
}

#[test]
fn long_sums_lose_few_digits() {
    let n = 1 << 18;
    let tensor = |shape: Vec<usize>| Value::<f32>::real(regraft_ir::Tensor::new(shape, vec![0.1f32; n]));
    let bindings = Bindings::new();
    for (shape, axis, types) in
        [(vec![n], 0, [n as i64].as_slice()), (vec![n / 2, 2], 0, &[n as i64 / 2, 2]), (vec![2, n / 2], 1, &[2, n as i64 / 2])]
    {
        let op = op("ReduceMean", &axes(&[axis], false));
        let types = [f32s(types)];
        let outputs = op.infer(&types).unwrap();
        let context = regraft_ir::EvalContext { bindings: &bindings, input_types: &types, output_types: &outputs };
        let Value::Real(mean) = op.eval(&[tensor(shape)], &context).unwrap().remove(0) else { panic!("a mean is real") };
        assert!(mean.data.iter().all(|v| (v - 0.1).abs() < 1e-7), "{:?}", mean.data);
    }
}

#[test]
fn reductions_agree_with_their_definition_on_random_shapes() {
    let mut random = Random::new(13);
    for _ in 0..200 {
        let rank = random.below(5);
        let shape: Vec<i64> = (0..rank).map(|_| 1 + random.below(4) as i64).collect();
        let reduced: Vec<i64> = (0..rank as i64).filter(|_| random.below(2) == 0).collect();
        let ty = f32s(&shape);
        let value = random.value(&ty, &Bindings::new());
        let Value::Real(x) = &value else { panic!("a real operand") };
        for keepdims in [false, true] {
            for (name, start, f) in [
                ("ReduceSum", 0.0, (|a, b| a + b) as fn(f64, f64) -> f64),
                ("ReduceSumSquare", 0.0, |a, b| a + b * b),
                ("ReduceMax", -INF, f64::max),
                ("ReduceMin", INF, f64::min),
            ] {
                let op = op(name, &axes(&reduced, keepdims));
                let Value::Real(got) =
                    eval(&op, std::slice::from_ref(&ty), std::slice::from_ref(&value), &Bindings::new()).unwrap().remove(0)
                else {
                    panic!("a real result")
                };
                let mut want: BTreeMap<Vec<usize>, f64> = BTreeMap::new();
                let mut index = vec![0; rank];
                for element in &x.data {
                    let key = index.iter().enumerate().filter(|(at, _)| !reduced.contains(&(*at as i64))).map(|(_, i)| *i).collect();
                    let total = want.entry(key).or_insert(start);
                    *total = f(*total, *element);
                    for at in (0..rank).rev() {
                        index[at] += 1;
                        if index[at] < x.shape[at] {
                            break;
                        }
                        index[at] = 0;
                    }
                }
                assert!(got.data.iter().zip(want.values()).all(|(g, w)| (g - w).abs() < 1e-9), "{op:?} of {ty}");
                assert_eq!(got.data.len(), want.len(), "{op:?} of {ty}");
            }
        }
    }
}
