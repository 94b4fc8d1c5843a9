//! Convolutions and pools against their definitions.

use regraft_ir::{Attr, Bindings, DType, Kernel, Op, Tensor, TensorType, Value};

use crate::common::{Random, eval, f32s, op, round_trip};
use crate::naive::{Window, at, check_symbolic, close, counted, indices, pool, ramp, run, signed, tensor, typed};

/// A random case of a convolution: window, group, shapes of input and weights, with or without
/// bias.
fn conv_case(random: &mut Random, transposed: bool) -> (Window, i64, Vec<i64>, Vec<i64>, bool) {
    let rank = 1 + random.below(3);
    let window = Window::random(random, rank, false);
    let channels = 2 * (1 + random.below(3) as i64);
    let group = [1, 2, channels][random.below(3)];
    let results = group * (1 + random.below(3) as i64);
    let mut x = vec![1 + random.below(2) as i64, channels];
    x.extend((0..rank).map(|_| 1 + random.below(if rank == 3 { 5 } else { 9 }) as i64));
    let mut w = if transposed { vec![channels, results / group] } else { vec![results, channels / group] };
    w.extend(&window.kernel);
    (window, group, x, w, random.below(2) == 1)
}

fn conv(window: &Window, group: i64) -> Op {
    let mut attrs = window.attrs(false);
    attrs.push(("group", Attr::Int(group)));
    op("Conv", &attrs)
}

/// One element of the result.
fn naive_element(x: &Tensor<f64>, w: &Tensor<f64>, bias: Option<&Tensor<f64>>, window: &Window, group: usize, index: &[usize]) -> f64 {
    let (inner, outer) = (w.shape[1], w.shape[0] / group);
    let mut sum = bias.map_or(0.0, |b| b.data[index[1]]);
    for tap in window.taps() {
        let position = window.position(&signed(&index[2..]), &tap);
        for c in 0..inner {
            let source = [&[index[0] as i64, (index[1] / outer * inner + c) as i64], position.as_slice()].concat();
            let weight = [&[index[1] as i64, c as i64], tap.as_slice()].concat();
            sum += at(x, &source).unwrap_or(0.0) * at(w, &weight).unwrap_or(0.0);
        }
    }
    sum
}

#[test]
fn conv_matches_its_definition() {
    let mut random = Random::new(1);
    let mut ran = 0;
    for case in 0..500 {
        let (window, group, x, w, biased) = conv_case(&mut random, false);
        let (tx, tw, tb) = (tensor(&mut random, &x), tensor(&mut random, &w), tensor(&mut random, &w[..1]));
        let op = conv(&window, group);
        let mut operands = vec![&tx, &tw];
        operands.extend(biased.then_some(&tb));
        let sizes = (0..window.kernel.len()).map(|a| x[2 + a] + window.begin(a) + window.end(a) - window.extent(a));
        if sizes.clone().any(|s| s < 0) {
            assert!(run(&op, &operands).is_err(), "case {case}: {op:?} on {x:?} and {w:?}");
            continue;
        }
        let mut out = vec![x[0] as usize, w[0] as usize];
        out.extend(sizes.enumerate().map(|(a, s)| (s / window.strides[a] + 1) as usize));
        let want = Tensor::from_fn(out, |index| naive_element(&tx, &tw, biased.then_some(&tb), &window, group as usize, index));
        close(&run(&op, &operands).unwrap(), &want, 1e-9, &format!("case {case}: {op:?} on {x:?} and {w:?}"));
        let mut shapes = vec![x.clone(), w.clone()];
        shapes.extend(biased.then(|| w[..1].to_vec()));
        check_symbolic(&op, &shapes, &(2..x.len()).chain([0]).collect::<Vec<_>>());
        let types: Vec<TensorType> = shapes.iter().map(|s| f32s(s)).collect();
        assert_eq!(round_trip(&op, &types), (7..=21).collect::<Vec<_>>());
        ran += 1;
    }
    assert!(ran > 300, "only {ran} cases have results");
}

#[test]
fn conv_in_several_blocks_matches_its_definition() {
    let window = |kernel: &[i64], stride: i64, pads: &[i64]| Window {
        kernel: kernel.to_vec(),
        strides: vec![stride; kernel.len()],
        pads: pads.to_vec(),
        dilations: vec![1; kernel.len()],
    };
    let mut random = Random::new(2);
    for (x, results, group, window) in [
        (vec![1, 8, 60_001], 2, 1, window(&[5], 1, &[2, 1])),
        (vec![1, 64, 50, 49], 2, 1, window(&[3, 3], 1, &[1, 1, 1, 1])),
        (vec![2, 128, 68, 67], 2, 2, window(&[4, 4], 2, &[1, 0, 2, 1])),
        (vec![1, 40, 18, 19, 17], 1, 1, window(&[3, 3, 3], 1, &[1, 1, 1, 1, 1, 1])),
    ] {
        let mut w = vec![results, x[1] / group];
        w.extend(&window.kernel);
        let (tx, tw) = (tensor(&mut random, &x), tensor(&mut random, &w));
        let found = run(&conv(&window, group), &[&tx, &tw]).unwrap();
        let depth: i64 = w[1..].iter().product();
        let positions: usize = found.shape[2..].iter().product();
        assert!(depth as usize * positions * 8 > 8 << 20, "the case {x:?} is one block");
        // Every 13th element: blocks are much longer.
        let mut at = 0;
        Tensor::from_fn(found.shape.clone(), |index| {
            if at % 13 == 0 {
                let want = naive_element(&tx, &tw, None, &window, group as usize, index);
                assert!((found.data[at] - want).abs() < 1e-9, "{x:?} at {index:?}: {} is not {want}", found.data[at]);
            }
            at += 1;
        });
    }
}

fn conv_transpose(window: &Window, group: i64, output_padding: &[i64]) -> Op {
    let mut attrs = window.attrs(false);
    attrs.extend([("group", Attr::Int(group)), ("output_padding", Attr::Ints(output_padding.to_vec()))]);
    op("ConvTranspose", &attrs)
}

#[test]
fn conv_transpose_matches_its_definition() {
    let mut random = Random::new(3);
    let mut ran = 0;
    for case in 0..400 {
        let (window, group, x, w, biased) = conv_case(&mut random, true);
        let rank = window.kernel.len();
        let added: Vec<i64> = (0..rank).map(|a| random.below(window.strides[a].max(window.dilations[a]) as usize) as i64).collect();
        let results = w[1] * group;
        let (tx, tw, tb) = (tensor(&mut random, &x), tensor(&mut random, &w), tensor(&mut random, &[results]));
        let op = conv_transpose(&window, group, &added);
        let mut operands = vec![&tx, &tw];
        operands.extend(biased.then_some(&tb));
        let size = |a: usize| window.strides[a] * (x[2 + a] - 1) + added[a] + window.extent(a) - window.begin(a) - window.end(a);
        if (0..rank).any(|a| size(a) < 1) {
            assert!(run(&op, &operands).is_err(), "case {case}: {op:?} on {x:?} and {w:?}");
            continue;
        }
        let mut want =
            Tensor::filled([vec![x[0], results], (0..rank).map(size).collect()].concat().iter().map(|d| *d as usize).collect(), 0.0);
        let strides = want.strides();
        let plane: usize = want.shape[2..].iter().product();
        if biased {
            want.data.iter_mut().enumerate().for_each(|(i, v)| *v = tb.data[i / plane % results as usize]);
        }
        let per_group = x[1] / group;
        for source in indices(&x) {
            for m in 0..w[1] {
                for tap in window.taps() {
                    let target = window.position(&source[2..], &tap);
                    if (0..rank).any(|a| target[a] < 0 || target[a] >= size(a)) {
                        continue;
                    }
                    let index = [vec![source[0], source[1] / per_group * w[1] + m], target].concat();
                    let flat: usize = index.iter().zip(&strides).map(|(i, s)| *i as usize * s).sum();
                    let weight = at(&tw, &[vec![source[1], m], tap].concat()).unwrap();
                    want.data[flat] += at(&tx, &source).unwrap() * weight;
                }
            }
        }
        close(&run(&op, &operands).unwrap(), &want, 1e-9, &format!("case {case}: {op:?} on {x:?} and {w:?}"));
        let mut shapes = vec![x.clone(), w.clone()];
        shapes.extend(biased.then(|| vec![results]));
        check_symbolic(&op, &shapes, &(2..x.len()).chain([0]).collect::<Vec<_>>());
        let types: Vec<TensorType> = shapes.iter().map(|s| f32s(s)).collect();
        assert_eq!(round_trip(&op, &types), (7..=21).collect::<Vec<_>>());
        ran += 1;
    }
    assert!(ran > 250, "only {ran} cases have results");
}

/// In several blocks of columns, by adjointness: `<conv(x), y> = <x, conv_transpose(y)>`.
#[test]
fn conv_transpose_is_the_adjoint_of_conv_in_several_blocks() {
    let window = Window { kernel: vec![3, 3], strides: vec![2, 2], pads: vec![1, 0, 0, 1], dilations: vec![1, 1] };
    let mut random = Random::new(4);
    let (x, w) = (tensor(&mut random, &[1, 48, 100, 101]), tensor(&mut random, &[5, 48, 3, 3]));
    let forward = run(&conv(&window, 1), &[&x, &w]).unwrap();
    assert!(48 * 9 * forward.shape[2] * forward.shape[3] * 8 > 8 << 20, "one block");
    let y = tensor(&mut random, &signed(&forward.shape));
    let backward = run(&conv_transpose(&window, 1, &[0, 1]), &[&y, &w]).unwrap();
    assert_eq!(backward.shape, x.shape);
    let dot = |a: &Tensor<f64>, b: &Tensor<f64>| a.data.iter().zip(&b.data).map(|(a, b)| a * b).sum::<f64>();
    let inner = dot(&x, &backward);
    assert!((dot(&forward, &y) - inner).abs() < 1e-6, "{} and {inner}", dot(&forward, &y));
}

/// The number of windows by ONNX Runtime's rule, in its own form.
fn pool_size(window: &Window, axis: usize, size: i64, ceil: bool) -> i64 {
    let room = size + window.begin(axis) + window.end(axis) - window.extent(axis);
    let stride = window.strides[axis];
    if !ceil {
        return room.div_euclid(stride) + 1;
    }
    let rounded = -(-room).div_euclid(stride) + 1;
    if (rounded - 1) * stride >= size + window.begin(axis) { rounded - 1 } else { rounded }
}

#[test]
fn pools_match_their_definitions() {
    let mut random = Random::new(5);
    let mut ran = 0;
    for case in 0..900 {
        let rank = 1 + random.below(3);
        let window = Window::random(&mut random, rank, true);
        let ceil = random.below(2) == 1;
        let mut shape = vec![1 + random.below(2) as i64, 1 + random.below(3) as i64];
        shape.extend((0..rank).map(|_| 1 + random.below(9) as i64));
        let x = tensor(&mut random, &shape);
        let sizes: Vec<i64> = (0..rank).map(|a| pool_size(&window, a, shape[2 + a], ceil)).collect();
        let variants = [
            pool("MaxPool", &window, ceil, None),
            pool("AveragePool", &window, ceil, Some(false)),
            pool("AveragePool", &window, ceil, Some(true)),
        ];
        if sizes.iter().any(|s| *s < 1) {
            variants.iter().for_each(|op| assert!(run(op, &[&x]).is_err(), "case {case}: {op:?} on {shape:?}"));
            continue;
        }
        let out: Vec<usize> = shape[..2].iter().chain(&sizes).map(|d| *d as usize).collect();
        let mut values = Vec::new();
        let mut counts = Vec::new();
        let layout = Tensor::from_fn(out.clone(), |index| {
            let head = signed(&index[..2]);
            let positions: Vec<Vec<i64>> = window.taps().iter().map(|tap| window.position(&signed(&index[2..]), tap)).collect();
            values.push(positions.iter().filter_map(|p| at(&x, &[head.as_slice(), p].concat())).collect::<Vec<f64>>());
            let padded = |p: &&Vec<i64>| (0..rank).all(|a| p[a] >= -window.begin(a) && p[a] < shape[2 + a] + window.end(a));
            counts.push(positions.iter().filter(padded).count() as f64);
            0.0
        });
        let of = |f: &dyn Fn(usize) -> f64| Tensor::new(layout.shape.clone(), (0..values.len()).map(f).collect());
        let sum = |i: usize| values[i].iter().sum::<f64>();
        let empty = values.iter().any(Vec::is_empty);
        let no_count = counts.contains(&0.0);
        let wants = [
            (empty, of(&|i| values[i].iter().copied().fold(f64::NEG_INFINITY, f64::max))),
            (empty, of(&|i| sum(i) / values[i].len() as f64)),
            (no_count, of(&|i| sum(i) / counts[i])),
        ];
        for (op, (refused, want)) in variants.iter().zip(&wants) {
            let found = run(op, &[&x]);
            if *refused {
                assert!(found.is_err(), "case {case}: {op:?} on {shape:?}");
                continue;
            }
            close(&found.unwrap(), want, 1e-12, &format!("case {case}: {op:?} on {shape:?}"));
            check_symbolic(op, std::slice::from_ref(&shape), &(0..shape.len()).collect::<Vec<_>>());
            let first = match op {
                Op::AveragePool(op) if op.dilations.iter().any(|d| *d != 1) => 19,
                Op::AveragePool(op) if op.ceil_mode => 10,
                Op::MaxPool(op) if op.ceil_mode || op.dilations.iter().any(|d| *d != 1) => 10,
                _ => 7,
            };
            assert_eq!(round_trip(op, &[f32s(&shape)]), (first..=21).collect::<Vec<_>>());
            ran += 1;
        }
    }
    assert!(ran > 1200, "only {ran} cases have results");
}

fn row(kernel: i64, stride: i64, pads: [i64; 2], dilation: i64) -> Window {
    Window { kernel: vec![kernel], strides: vec![stride], pads: pads.to_vec(), dilations: vec![dilation] }
}

/// Answers of ONNX Runtime on `1, 2, ..`: size, window, maxima, means without and with pads
/// counted.
#[test]
fn ceil_mode_pools_answer_as_onnx_runtime() {
    let third = 1.0 / 3.0;
    for (n, window, largest, without, with) in [
        (4, row(2, 2, [1, 0], 1), vec![1.0, 3.0, 4.0], vec![1.0, 2.5, 4.0], vec![0.5, 2.5, 4.0]),
        (5, row(2, 2, [0, 0], 1), vec![2.0, 4.0, 5.0], vec![1.5, 3.5, 5.0], vec![1.5, 3.5, 5.0]),
        (4, row(3, 3, [1, 1], 1), vec![2.0, 4.0], vec![1.5, 3.5], vec![1.0, 7.0 * third]),
        (5, row(3, 2, [1, 1], 1), vec![2.0, 4.0, 5.0], vec![1.5, 3.0, 4.5], vec![1.0, 3.0, 3.0]),
        (6, row(2, 2, [1, 1], 1), vec![1.0, 3.0, 5.0, 6.0], vec![1.0, 2.5, 4.5, 6.0], vec![0.5, 2.5, 4.5, 3.0]),
        (7, row(3, 3, [1, 1], 1), vec![2.0, 5.0, 7.0], vec![1.5, 4.0, 6.5], vec![1.0, 4.0, 13.0 * third]),
        (6, row(4, 3, [1, 2], 1), vec![3.0, 6.0, 6.0], vec![2.0, 4.5, 6.0], vec![1.5, 4.5, 2.0]),
        (6, row(2, 2, [1, 1], 3), vec![3.0, 5.0, 4.0], vec![3.0, 3.5, 4.0], vec![1.5, 3.5, 2.0]),
        (2, row(3, 2, [0, 0], 1), vec![2.0], vec![1.5], vec![1.5]),
        (4, row(1, 3, [0, 0], 1), vec![1.0, 4.0], vec![1.0, 4.0], vec![1.0, 4.0]),
    ] {
        for (op, want) in [
            (pool("MaxPool", &window, true, None), largest),
            (pool("AveragePool", &window, true, Some(false)), without),
            (pool("AveragePool", &window, true, Some(true)), with),
        ] {
            close(&run(&op, &[&ramp(n)]).unwrap(), &Tensor::new(vec![1, 1, want.len()], want), 1e-12, &format!("{op:?} on {n}"));
        }
    }
    let square = Window { kernel: vec![3, 3], strides: vec![2, 2], pads: vec![1; 4], dilations: vec![1, 1] };
    let found = run(&pool("AveragePool", &square, true, Some(true)), &[&counted(&[1, 1, 4, 4])]).unwrap();
    let want = [14.0 / 9.0, 10.0 * third, 2.0, 19.0 * third, 11.0, 6.0, 4.5, 7.5, 4.0];
    close(&found, &Tensor::new(vec![1, 1, 3, 3], want.to_vec()), 1e-12, "a padded square");
}

#[test]
fn max_pool_of_bytes_keeps_their_order() {
    let op = pool("MaxPool", &row(2, 1, [0, 1], 1), false, None);
    for (dtype, data, want) in [(DType::I8, [-5, -7, -1], [-5, -1, -1]), (DType::U8, [250, 3, 4], [250, 4, 4])] {
        let types = [TensorType::new(dtype, [1, 1, 3])];
        let found = eval(&op, &types, &[crate::common::ints(&[1, 1, 3], &data)], &Bindings::new()).unwrap();
        assert_eq!(found[0], Value::int(Tensor::new(vec![1, 1, 3], want.to_vec())));
        assert_eq!(round_trip(&op, &types), (12..=21).collect::<Vec<_>>());
    }
}

#[test]
fn global_pools_reduce_each_plane() {
    let mut random = Random::new(6);
    for shape in [vec![2, 3, 5], vec![1, 4, 3, 7], vec![2, 2, 2, 3, 2], vec![1, 1, 40, 41]] {
        let x = tensor(&mut random, &shape);
        let size: usize = x.shape[2..].iter().product();
        let planes: Vec<&[f64]> = x.data.chunks(size).collect();
        let mut reduced = x.shape.clone();
        reduced[2..].fill(1);
        let mean = planes.iter().map(|p| p.iter().sum::<f64>() / size as f64).collect();
        let largest = planes.iter().map(|p| p.iter().copied().fold(f64::MIN, f64::max)).collect();
        for (name, want) in [("GlobalAveragePool", mean), ("GlobalMaxPool", largest)] {
            let op = op(name, &[]);
            close(&run(&op, &[&x]).unwrap(), &Tensor::new(reduced.clone(), want), 1e-12, name);
            assert_eq!(round_trip(&op, &[f32s(&shape)]), (7..=21).collect::<Vec<_>>());
            check_symbolic(&op, std::slice::from_ref(&shape), &[0, 1, 2]);
        }
    }
}

/// Symbolic result types, printed.
#[test]
fn symbolic_sizes_have_closed_forms() {
    let same = row(3, 1, [1, 1], 1);
    let half = row(3, 2, [1, 1], 1);
    let weights = f32s(&[8, 4, 3]);
    let shape = |op: &Op, types: &[TensorType]| op.infer(types).unwrap()[0].to_string();
    assert_eq!(shape(&conv(&same, 1), &[typed(&["N", "4", "L"]), weights.clone()]), "f32[N,8,L]");
    assert_eq!(shape(&conv(&half, 1), &[typed(&["N", "4", "L"]), weights]), "f32[N,8,floor(L + 1, 2)]");
    assert_eq!(shape(&pool("MaxPool", &row(2, 2, [0, 0], 1), true, None), &[typed(&["N", "C", "L"])]), "f32[N,C,floor(L + 1, 2)]");
    assert_eq!(shape(&conv_transpose(&row(2, 2, [0, 0], 1), 1, &[0]), &[typed(&["N", "4", "L"]), f32s(&[4, 8, 2])]), "f32[N,8,2*L]");
}

#[test]
fn ill_typed_windows_are_refused() {
    let good = row(3, 1, [1, 1], 1);
    let x = f32s(&[1, 4, 8]);
    let change = |f: &dyn Fn(&mut Window)| {
        let mut window = good.clone();
        f(&mut window);
        window
    };
    let weights = f32s(&[6, 4, 3]);
    let refused = |op: &Op, types: &[TensorType]| assert!(op.infer(types).is_err(), "{op:?} on {types:?}");
    assert!(conv(&good, 1).infer(&[x.clone(), weights.clone()]).is_ok());
    for window in [
        change(&|w| w.strides = vec![0]),
        change(&|w| w.strides = vec![1, 1]),
        change(&|w| w.pads = vec![1]),
        change(&|w| w.pads = vec![-1, 0]),
        change(&|w| w.dilations = vec![i64::MAX]),
        change(&|w| w.dilations = vec![5]),
    ] {
        refused(&conv(&window, 1), &[x.clone(), weights.clone()]);
        refused(&pool("AveragePool", &window, false, Some(true)), std::slice::from_ref(&x));
    }
    for types in [
        vec![x.clone()],
        vec![x.clone(), f32s(&[6, 3, 3])],
        vec![x.clone(), f32s(&[6, 4, 3, 3])],
        vec![x.clone(), weights.clone(), f32s(&[5])],
        vec![x.clone(), weights.clone(), f32s(&[1, 6])],
        vec![x.with_dtype(DType::F64), weights.clone()],
        vec![x.with_dtype(DType::I32), weights.with_dtype(DType::I32)],
        vec![x.clone(), typed(&["6", "4", "K"])],
        vec![typed(&["1", "C", "8"]), weights.clone()],
    ] {
        refused(&conv(&good, 1), &types);
    }
    refused(&conv(&good, 4), &[x.clone(), f32s(&[6, 1, 3])]);
    refused(&conv(&good, 0), &[x.clone(), weights.clone()]);
    refused(&conv_transpose(&good, 1, &[1]), &[x.clone(), f32s(&[4, 6, 3])]);
    refused(&conv_transpose(&good, 3, &[0]), &[x.clone(), f32s(&[4, 6, 3])]);
    refused(&pool("MaxPool", &change(&|w| w.pads = vec![3, 0]), false, None), &[x]);
}

#[test]
fn cost_features_tell_dense_from_thin() {
    let window = row(3, 1, [1, 1], 1);
    let shapes = |group: usize| [vec![2, 4, 8], vec![4, 4 / group, 3]];
    let work = |group: usize| conv(&window, group as i64).work(&shapes(group), &[vec![2, 4, 8]]);
    assert_eq!((work(1).flops, work(1).kernel), (2.0 * 64.0 * 12.0, Kernel::Dense));
    assert_eq!((work(4).flops, work(4).kernel), (2.0 * 64.0 * 3.0, Kernel::Thin));
    let transposed = conv_transpose(&window, 1, &[0]).work(&[vec![2, 4, 8], vec![4, 5, 3]], &[vec![2, 5, 8]]);
    assert_eq!((transposed.flops, transposed.kernel), (2.0 * 64.0 * 15.0, Kernel::Dense));
    let pooled = pool("MaxPool", &window, false, None).work(&[vec![2, 4, 8]], &[vec![2, 4, 8]]);
    assert_eq!((pooled.flops, pooled.kernel), (3.0 * 64.0, Kernel::Window));
}
