//! The numeric check of a model against its original: on the runtime with its optimizer off, and on
//! the reference executor.

use std::time::Instant;

use regraft_ir::Trust;
use regraft_ir::parallel::joined;
use regraft_ir::{Graph, OpKind, ValueId};
use regraft_onnx::{Model, WriteOptions, Written};
use regraft_rules::Numeric;
use regraft_runtime::{Feeds, Fill, HostTensor, ModelSource, OptLevel, RuntimeError, Session, SessionOptions};

use crate::agreement::{Agreement, compare};
use crate::error::Failure;
use crate::exact::{self, CONFIRMED, CONFIRMED_ROUNDED};
use crate::exposed::exposed;
use crate::optimize::binding::Binding;
use crate::optimize::candidate::Candidate;
use crate::optimize::interface::{declared_differently, is_narrowed, reported_differently};
use crate::optimize::load::Job;
use crate::optimize::perturb::perturbed;
use crate::optimize::reference::{REFERENCE_SPEED, Reference, Run, compare_values, flops, results_of, to_host};
use crate::report::Check;
use crate::sizes::{Sizes, as_declared};

/// Relative difference that is always tolerated, given single-precision arithmetic in deep graphs.
pub const TOLERANCE: f64 = 1e-4;
/// The same where a fast bilinear algorithm was applied.
pub const TOLERANCE_BILINEAR: f64 = 1e-3;
/// If nothing can be computed in double precision, a fill is set aside when rounding may account
/// for a tenth of an output's difference.
pub(crate) const FLOOR_FACTOR: f64 = 10.0;
/// If rounding alone may change an output by this fraction of its largest magnitude, single
/// precision cannot tell right from wrong.
pub(crate) const BLURRED: f64 = 0.05;
/// Seconds that the reference executor may spend on a difference beyond the tolerance, regardless
/// of the time left.
const CONFIRM_SECONDS: f64 = 20.0;

/// A candidate to check, at one binding.
pub struct Subject<'a> {
    /// The task: the original, the runtime, the seed.
    pub job: &'a Job,
    /// The candidate.
    pub candidate: &'a Candidate,
    /// The candidate as a file.
    pub rewritten: ModelSource<'a>,
    /// Sizes to run at, and the user's own inputs with these sizes.
    pub binding: &'a Binding,
    /// When the reference executor should be done.
    pub deadline: Instant,
}

impl<'a> Subject<'a> {
    fn model(&self) -> &'a Model {
        &self.job.input.model
    }

    fn threads(&self) -> usize {
        self.job.threads
    }

    /// Seconds left for the reference executor.
    fn seconds_left(&self) -> f64 {
        self.deadline.saturating_duration_since(Instant::now()).as_secs_f64()
    }

    /// Whether rules may have rounded constants. None are folded yet.
    fn rounds(&self) -> bool {
        self.candidate.script.applied().any(|a| a.numeric == Numeric::RoundsConstants || a.trust == Trust::Bounded)
    }
}

/// Tolerated difference of a candidate's real outputs, relative to their largest magnitude.
pub fn tolerance(candidate: &Candidate) -> f64 {
    let bilinear = candidate.script.applied().any(|a| a.numeric == Numeric::FastBilinear);
    if bilinear { TOLERANCE_BILINEAR } else { TOLERANCE }
}

/// Runs all comparisons. `Check::passed` says whether the rewritten model may be written.
///
/// Nothing is timed here, so the reference executor works while the runtime does.
pub fn verify(subject: &Subject<'_>) -> Result<Check, Failure> {
    let made_up =
        Fill::ALL.map(|fill| subject.binding.sizes.feeds(fill, subject.job.request.seed).map(|feeds| (fill.name().to_string(), feeds)));
    let mut fills = made_up.into_iter().collect::<Result<Vec<_>, _>>()?;
    fills.extend(subject.binding.data.iter().cloned());
    let failure = match everywhere(subject, &fills) {
        (Ok(compared), exact) => return Ok(told(subject, compared, exact)),
        (Err(failure), _) => failure,
    };
    let notes = retain_accepted(subject, &mut fills)?;
    if notes.is_empty() {
        return Err(failure);
    }
    let (compared, exact) = everywhere(subject, &fills);
    let mut check = told(subject, compared?, exact);
    check.notes.extend(notes);
    Ok(check)
}

/// Both models on the runtime, and the rewritten one in double precision.
fn everywhere<'f>(subject: &Subject<'_>, fills: &'f [(String, Feeds)]) -> (Result<Compared<'f>, Failure>, Result<Reference, String>) {
    let (rewritten, sizes, deadline) = (&subject.candidate.artifact.written.proto, &subject.binding.sizes, subject.deadline);
    std::thread::scope(|scope| {
        let exact = scope.spawn(|| Reference::of(rewritten, sizes, fills.iter().map(|(_, feeds)| feeds), deadline));
        let compared = on_runtime(subject, fills);
        (compared, joined(exact))
    })
}

/// Leaves out what the input model does not run on, and says why: where numbers become indices, for
/// example, large ones are out of bounds.
fn retain_accepted(subject: &Subject<'_>, fills: &mut Vec<(String, Feeds)>) -> Result<Vec<String>, Failure> {
    let options = SessionOptions { threads: subject.threads(), ..SessionOptions::default() };
    let mut session = subject.job.runtime.open(subject.job.source(), &options)?;
    let mut notes = Vec::new();
    fills.retain(|(name, feeds)| {
        let why = session.run(feeds).err();
        notes.extend(why.as_ref().map(|why| format!("fill `{name}`: the input model does not run on it: {why}")));
        why.is_none()
    });
    Ok(notes)
}

/// What a comparison shows.
fn told(subject: &Subject<'_>, compared: Compared<'_>, exact: Result<Reference, String>) -> Check {
    let Compared { mut check, names, mut cases } = compared;
    // Another interface: nothing was compared.
    if cases.is_empty() {
        return check;
    }
    in_double_precision(subject, exact, &mut cases, &names, &mut check);
    check.fills = cases.iter().filter(|case| case.tells).map(|case| case.name.to_string()).collect();
    if !check.fills.iter().any(|name| name != Fill::Zeros.name()) {
        check.passed = false;
        check
            .notes
            .push("the input model amplifies rounding so much that no comparison tells anything (give real inputs with --data)".into());
    }
    check
}

/// Both models on the runtime.
struct Compared<'f> {
    check: Check,
    /// Names of the declared outputs.
    names: Vec<String>,
    /// One for each set of inputs.
    cases: Vec<Case<'f>>,
}

/// A model, and what it computes from each set of inputs.
struct Ran {
    session: Box<dyn Session>,
    outputs: Vec<Vec<HostTensor>>,
}

impl Ran {
    fn of<'f>(mut session: Box<dyn Session>, feeds: impl IntoIterator<Item = &'f Feeds>) -> Result<Ran, RuntimeError> {
        let outputs = feeds.into_iter().map(|feeds| session.run(feeds)).collect::<Result<_, _>>()?;
        Ok(Ran { session, outputs })
    }
}

/// Compares both models on the runtime.
fn on_runtime<'f>(subject: &Subject<'_>, fills: &'f [(String, Feeds)]) -> Result<Compared<'f>, Failure> {
    let (runtime, tolerance) = (&*subject.job.runtime, tolerance(subject.candidate));
    let options = |level| SessionOptions { level, threads: subject.threads(), ..SessionOptions::default() };
    let open = |source, level| runtime.open(source, &options(level));
    // The original, which defines what is right, also exposes what its declared outputs hide.
    let shown = exposures(subject)?;
    let mut check = Check { tolerance, passed: true, ..Check::default() };
    if shown.is_none() && before_saturation(&subject.candidate.graph).is_some() {
        check.notes.push("values before the last softmax or sigmoid could not be exposed".into());
    }
    let plain_source = shown.as_ref().map_or(subject.job.source(), |e| ModelSource::bytes(&e.original));
    let feeds = || fills.iter().map(|(_, feeds)| feeds);
    let (plain, rewritten) = std::thread::scope(|scope| {
        let plain = scope.spawn(|| {
            let session = runtime.open(plain_source, &options(OptLevel::Disabled).unpacked())?;
            Ran::of(session, feeds())
        });
        let tuned = open(subject.job.source(), OptLevel::All)?;
        let ours = open(subject.rewritten, OptLevel::All)?;
        let inputs = as_declared(tuned.inputs(), subject.model());
        let declared = (subject.model().proto(), &subject.candidate.artifact.written.proto);
        let changed = declared_differently(declared, (&inputs, ours.inputs()), (tuned.outputs(), ours.outputs()));
        let rewritten = match changed {
            Some(what) => Err(what),
            None => {
                let tuned = scope.spawn(|| Ran::of(tuned, feeds()));
                Ok((Ran::of(ours, feeds())?, joined(tuned)?))
            }
        };
        Ok::<_, RuntimeError>((joined(plain)?, rewritten))
    })?;
    let (mut ours, tuned) = match rewritten {
        Ok(both) => both,
        Err(what) => {
            check.passed = false;
            check.notes.push(format!("the interface changed: {what}"));
            return Ok(Compared { check, names: Vec::new(), cases: Vec::new() });
        }
    };
    let (reported, reported_ours) = (tuned.session.outputs().to_vec(), ours.session.outputs().to_vec());
    let names: Vec<String> = reported.iter().map(|o| o.name.clone()).collect();
    let mut plain_session = plain.session;
    let mut cases = Vec::new();
    let (mut worst, mut floor) = (Agreement::default(), Agreement::default());
    let outputs = plain.outputs.into_iter().zip(&tuned.outputs).zip(&ours.outputs);
    for ((name, feeds), ((mut want, by_tuned), by_ours)) in fills.iter().zip(outputs) {
        let inner = want.split_off(names.len());
        if let Some(what) = reported_differently(subject.model().proto(), &reported, &reported_ours, &want) {
            check.passed = false;
            check.notes.push(format!("fill `{name}`: {what}"));
        }
        let here = compare(&names, &want, by_tuned);
        let ours = compare(&names, &want, by_ours);
        if ours.non_finite {
            check.notes.push(format!("fill `{name}`: outputs overflow in both models alike"));
        }
        // If the runtime's own optimizer breaks a comparison, the fill shows nothing about ours.
        if let Some(breach) = ours.breach(name).filter(|_| here.breach(name).is_none()) {
            check.passed = false;
            check.notes.push(format!("fill `{name}`: {breach}"));
        } else if let Some(lost) = ours.lost.first() {
            check.notes.push(format!("fill `{name}`: the input model overflows where the result does not: {lost}"));
        }
        let mut tells = true;
        if ours.relative > tolerance {
            let (output, relative, floor) = (&ours.output, ours.relative, here.relative);
            let place = format!("fill `{name}`: `{output}` differs by {relative:.1e}, the noise floor is {floor:.1e}");
            match confirmed(subject, feeds) {
                Ok((exact, bound)) if exact.within(bound) => {
                    check.confirmed += 1;
                    check.notes.push(format!("{place}; it is rounding: in double precision it differs by {:.1e}", exact.relative));
                }
                Ok((exact, _)) => {
                    check.passed = false;
                    let wrong = exact.broken.first().cloned().unwrap_or_else(|| format!("it differs by {:.1e}", exact.relative));
                    check.notes.push(format!("{place}; in double precision, {wrong}"));
                }
                Err(why) => {
                    let moved = perturbed(feeds).map(|moved| plain_session.run(&moved)).transpose()?;
                    let amplified = moved.map_or(0.0, |moved| compare(&names, &want, &moved[..names.len()]).relative).max(floor);
                    tells = relative > FLOOR_FACTOR * amplified;
                    check.passed &= !tells;
                    let counts = if tells { "" } else { "; the fill does not count, for rounding alone may change as much" };
                    check.notes.push(format!("{place}; double precision says nothing of it: {why}{counts}"));
                }
            }
        }
        if tells {
            worst.join(ours);
            floor.join(here);
        }
        cases.push(Case { name, feeds, want, inner, tells });
    }
    if is_narrowed(&reported, &reported_ours) && tuned.session.inputs().iter().any(|input| input.dims.contains(&None)) {
        elsewhere(subject, &mut *plain_session, &mut *ours.session, names.len(), &mut check)?;
    }
    drop((plain_session, tuned, ours));
    (check.worst, check.floor) = (worst.relative, floor.relative);
    check.histogram = worst.histogram;
    if let Some(exposed) = &shown {
        saturation(subject, exposed, &cases, &mut check)?;
    }
    Ok(Compared { check, names, cases })
}

/// Compares the sizes of outputs at other sizes of the inputs: what is a number here may not be one
/// there.
fn elsewhere(
    subject: &Subject<'_>,
    plain: &mut dyn Session,
    ours: &mut dyn Session,
    outputs: usize,
    check: &mut Check,
) -> Result<(), Failure> {
    let Job { runtime, request, .. } = subject.job;
    let here = Sizes { guessed: true, ..subject.binding.sizes.clone() };
    for sizes in here.others(subject.model(), subject.job.source(), &**runtime, &[], &[])? {
        let feeds = sizes.feeds(Fill::Normal, request.seed)?;
        let shapes = |values: Vec<HostTensor>| values.iter().take(outputs).map(|value| value.shape().to_vec()).collect::<Vec<_>>();
        let want = shapes(plain.run(&feeds)?);
        let have = ours.run(&feeds).map(shapes);
        if have.as_ref().is_ok_and(|have| *have == want) {
            continue;
        }
        let have = have.map_or_else(|why| format!("it fails: {why}"), |have| format!("outputs are {have:?} instead of {want:?}"));
        check.passed = false;
        check.notes.push(format!("at {}: {have}", sizes.shown()));
    }
    Ok(())
}

/// Both graphs in double precision, including inputs of saturating operators, and what may be
/// rounding there; constants of the candidate are the expressions they were folded from.
fn confirmed(subject: &Subject<'_>, feeds: &Feeds) -> Result<(Agreement, f64), String> {
    let (before, after) = (subject.model().graph(), &subject.candidate.graph);
    let seconds = (flops(before, &subject.binding.sizes) + flops(after, &subject.binding.sizes)) / REFERENCE_SPEED;
    if seconds > subject.seconds_left().max(CONFIRM_SECONDS) {
        return Err("there is no time left for it".into());
    }
    let outputs = |graph: &Graph| graph.outputs().iter().map(|o| (o.name.to_string(), o.value)).collect::<Vec<_>>();
    let (mut a, mut b) = (outputs(before), outputs(after));
    if let (Some(x), Some(y)) = (before_saturation(before), before_saturation(after))
        && x.iter().map(|v| &v.0).eq(y.iter().map(|v| &v.0))
    {
        a.extend(x);
        b.extend(y);
    }
    let names: Vec<String> = a.iter().map(|(name, _)| name.clone()).collect();
    let values = |named: Vec<(String, ValueId)>| named.into_iter().map(|(_, value)| value).collect::<Vec<_>>();
    let (a, b) = (values(a), values(b));
    let exact = exact::of_values(&names, (before, &a), (after, &b), feeds)?;
    let roundoff = if subject.rounds() { CONFIRMED_ROUNDED } else { CONFIRMED };
    if exact.within(roundoff) {
        return Ok((exact, roundoff));
    }
    let tolerance = tolerance(subject.candidate);
    match exact::noise(&names, (before, &a), feeds)? {
        noise if noise > tolerance => Err(format!("the last bit of a double moves the input model by {noise:.1e}")),
        noise if subject.rounds() => {
            let rounded = exact::noise_rounded(&names, (before, &a), feeds)?;
            Ok((exact, noise.max(rounded.min(tolerance))))
        }
        noise => Ok((exact, noise)),
    }
}

/// One set of inputs, and what the original computes from it without the runtime's optimizer.
struct Case<'f> {
    name: &'f str,
    feeds: &'f Feeds,
    want: Vec<HostTensor>,
    /// Inputs of saturating operators, where exposed.
    inner: Vec<HostTensor>,
    /// Whether a difference would tell right from wrong: not if the original amplifies rounding.
    tells: bool,
}

/// Both models with the inputs of saturating operators as further outputs.
struct Exposed {
    original: Vec<u8>,
    rewritten: Vec<u8>,
}

/// `None` if no output saturates, if the models do not saturate alike, or if values lack names.
fn exposures(subject: &Subject<'_>) -> Result<Option<Exposed>, Failure> {
    let (Some(original), Some(rewritten)) = (before_saturation(subject.model().graph()), before_saturation(&subject.candidate.graph))
    else {
        return Ok(None);
    };
    if original.len() != rewritten.len() {
        return Ok(None);
    }
    let expose = |written: &Written, graph: &Graph, values: &[(String, ValueId)]| {
        exposed(written, graph, &values.iter().map(|(_, value)| *value).collect::<Vec<_>>())
    };
    let untouched = subject.model().write(subject.model().graph(), &WriteOptions::default()).map_err(Failure::new)?;
    match (
        expose(&untouched, subject.model().graph(), &original),
        expose(&subject.candidate.artifact.written, &subject.candidate.graph, &rewritten),
    ) {
        (Ok(Some(original)), Ok(Some(rewritten))) => Ok(Some(Exposed { original, rewritten })),
        _ => Ok(None),
    }
}

/// Outputs of softmax and sigmoid hide or inflate differences, so their inputs are compared as
/// well.
fn saturation(subject: &Subject<'_>, exposed: &Exposed, cases: &[Case<'_>], check: &mut Check) -> Result<(), Failure> {
    let (runtime, tolerance) = (&*subject.job.runtime, tolerance(subject.candidate));
    let open = |bytes, level| {
        let options = SessionOptions { level, threads: subject.threads(), ..SessionOptions::default() };
        runtime.open(ModelSource::bytes(bytes), &options.unpacked())
    };
    let level = subject.job.refusal.as_ref().map_or(OptLevel::All, |refusal| refusal.level);
    let compared = [Fill::Normal.name(), Fill::Large.name()];
    let cases: Vec<&Case<'_>> = cases.iter().filter(|case| case.tells && compared.contains(&case.name)).collect();
    let run = |bytes, level| Ran::of(open(bytes, level)?, cases.iter().map(|case| case.feeds));
    let ran = std::thread::scope(|scope| {
        let tuned = scope.spawn(|| run(&exposed.original, level));
        let ours = run(&exposed.rewritten, OptLevel::All);
        (joined(tuned), ours)
    });
    let (tuned, ours) = match ran {
        (Ok(tuned), Ok(ours)) => (tuned, ours),
        // The further outputs change what the runtime's optimizer finds.
        (Err(RuntimeError::Load { cause, .. }), _) | (_, Err(RuntimeError::Load { cause, .. })) => {
            check.notes.push(format!("values before the last softmax or sigmoid could not be exposed: {cause}"));
            return Ok(());
        }
        (Err(failure), _) | (_, Err(failure)) => return Err(failure.into()),
    };
    // The declared outputs come first, and were compared before.
    let declared = subject.model().graph().outputs().len();
    let names: Vec<String> = tuned.session.outputs()[declared..].iter().map(|o| o.name.clone()).collect();
    let (mut worst, mut floor) = (Agreement::default(), Agreement::default());
    for (case, (by_ours, by_tuned)) in cases.iter().zip(ours.outputs.iter().zip(&tuned.outputs)) {
        let here = compare(&names, &case.inner, &by_ours[declared..]);
        let noise = compare(&names, &case.inner, &by_tuned[declared..]);
        if let Some(breach) = here.breach(case.name).filter(|_| noise.breach(case.name).is_none()) {
            check.passed = false;
            check.notes.push(format!("before saturation, fill `{}`: {breach}", case.name));
        }
        if here.relative > tolerance {
            let (fill, output, relative) = (&case.name, &here.output, here.relative);
            let place = format!(
                "before saturation, fill `{fill}`: `{output}` differs by {relative:.1e}, the noise floor is {:.1e}",
                noise.relative
            );
            match confirmed(subject, case.feeds) {
                Ok((exact, bound)) if exact.within(bound) => {
                    check.confirmed += 1;
                    check.notes.push(format!("{place}; it is rounding: in double precision it differs by {:.1e}", exact.relative));
                }
                Ok((exact, _)) => {
                    check.passed = false;
                    check.notes.push(format!("{place}; in double precision, by {:.1e}", exact.relative));
                }
                Err(why) => {
                    check.passed = false;
                    check.notes.push(format!("{place}; double precision says nothing of it: {why}"));
                }
            }
        }
        worst.join(here);
        floor.join(noise);
    }
    check.before_saturation = Some((worst.relative, floor.relative));
    Ok(())
}

/// Inputs of the saturating operators that compute outputs; `None` if no output saturates.
pub(crate) fn before_saturation(graph: &Graph) -> Option<Vec<(String, ValueId)>> {
    let mut values = Vec::new();
    for output in graph.outputs() {
        let node = graph.node(output.value.node);
        if matches!(node.op.kind(), OpKind::Softmax | OpKind::LogSoftmax | OpKind::Sigmoid | OpKind::HardSigmoid | OpKind::Tanh) {
            values.push((format!("regraft_before_{}", output.name), node.inputs[0]));
        }
    }
    if values.is_empty() { None } else { Some(values) }
}

/// The rewritten model in double precision against the original on the runtime, and thus against
/// the candidate.
///
/// A case that is inconclusive in single precision may be conclusive in double.
fn in_double_precision(
    subject: &Subject<'_>,
    exact: Result<Reference, String>,
    cases: &mut [Case<'_>],
    names: &[String],
    check: &mut Check,
) {
    let Reference { flops, runs } = match exact {
        Ok(reference) => reference,
        Err(why) => {
            check.passed = false;
            check.notes.push(why);
            return;
        }
    };
    let (fills, mut worst) = (runs.len(), None::<f64>);
    for (Case { name, want, tells, .. }, run) in cases.iter_mut().zip(runs) {
        let (values, results) = match run {
            Run::Done(values, results) => (values, results),
            Run::Stopped(why) => {
                check.reference_note = Some(why);
                break;
            }
        };
        let have: Option<Vec<HostTensor>> = results.iter().zip(&*want).map(|(v, like)| to_host(v, like)).collect();
        let Some(have) = have else {
            check.reference_note = Some("the reference executor gives another number of elements".into());
            check.passed = false;
            break;
        };
        let agreement = compare(names, want, &have);
        if !agreement.within(tolerance(subject.candidate)) && !agreement.non_finite {
            // If single precision itself is that far off, both graphs should still agree in
            // double precision.
            let exact = results_of(subject.model().proto(), &subject.binding.sizes, &values)
                .map(|original| compare_values(names, &original, &results, want));
            if exact.as_ref().is_some_and(|e| e.within(tolerance(subject.candidate))) {
                *tells = true;
                check.notes.push(format!("fill `{name}`: single precision is off by {:.1e} in the input model itself", agreement.relative));
            } else if *tells {
                check.passed = false;
                let broken = agreement
                    .broken
                    .first()
                    .cloned()
                    .unwrap_or_else(|| format!("`{}` differs by {:.1e}", agreement.output, agreement.relative));
                check.notes.push(format!("reference executor, fill `{name}`: {broken}"));
            }
        }
        if *tells {
            worst = Some(worst.unwrap_or(0.0).max(agreement.relative));
            check.reference_fills += 1;
        }
    }
    if fills < cases.len() && check.reference_note.is_none() {
        check.reference_note = Some(format!("one fill only: {:.0} GFLOP a run", flops / 1e9));
    }
    check.worst_reference = worst;
}
