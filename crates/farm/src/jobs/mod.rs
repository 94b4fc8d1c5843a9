//! `Jobs`: a file that says what to do, and the tasks that it makes.

mod policy;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use regraft::Failure;
use regraft::units::{parse_binds, parse_bytes, parse_duration, parse_shape};
use regraft_onnx::data_files;
use serde::Deserialize;

use crate::cores::Need;
use crate::farm::{Farm, digest, is_in_farm};
use crate::task::{Input, Kind, Labels, Task};

/// Options that keep a command from timing anything.
const UNTIMED: [&str; 2] = ["--untimed", "--frozen"];
/// Most shards of one table.
const MOST_SHARDS: u32 = 1 << 16;

/// A file of jobs, as TOML.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jobs {
    /// The folder of the farm, below that of the file; by default, the file's name without its
    /// ending.
    folder: Option<PathBuf>,
    #[serde(default)]
    optimize: Vec<Optimize>,
    #[serde(default)]
    bench: Vec<Bench>,
    #[serde(default)]
    generate: Vec<Generate>,
    #[serde(default)]
    synthesize: Vec<Synthesize>,
    #[serde(default)]
    policy: Vec<policy::Policy>,
}

/// One text or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a text, or a list of texts")]
enum Texts {
    One(String),
    Several(Vec<String>),
}

/// One number or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a number from 1 to 65535, or a list of such")]
enum Numbers {
    One(u16),
    Several(Vec<u16>),
}

impl Numbers {
    fn list(&self) -> &[u16] {
        match self {
            Numbers::One(number) => std::slice::from_ref(number),
            Numbers::Several(numbers) => numbers,
        }
    }
}

impl Default for Numbers {
    fn default() -> Numbers {
        Numbers::Several(Vec::new())
    }
}

impl Default for Texts {
    fn default() -> Texts {
        Texts::Several(Vec::new())
    }
}

impl Texts {
    fn list(&self) -> &[String] {
        match self {
            Texts::One(text) => std::slice::from_ref(text),
            Texts::Several(texts) => texts,
        }
    }
}

/// What all jobs may say of their commands.
#[derive(Clone, Debug, Default, Deserialize)]
struct Common {
    /// Threads of the command: one task for each number.
    #[serde(default)]
    threads: Numbers,
    /// Time that a command may take.
    budget: Option<String>,
    /// More options, as the command has them.
    #[serde(default)]
    options: Texts,
    /// Files that the options name.
    #[serde(default)]
    files: Texts,
    /// Cores of a task, if not as many as threads.
    cores: Option<usize>,
    /// Keys that there are not.
    #[serde(flatten)]
    unknown: BTreeMap<String, toml::Value>,
}

#[derive(Clone, Debug, Deserialize)]
struct Optimize {
    models: Texts,
    /// Sizes and symbols: one task for each entry.
    #[serde(default)]
    sizes: Vec<Texts>,
    /// Runtimes: one task for each.
    #[serde(default)]
    targets: Texts,
    #[serde(flatten)]
    common: Common,
}

#[derive(Clone, Debug, Deserialize)]
struct Bench {
    input: String,
    candidates: Texts,
    #[serde(default)]
    sizes: Vec<Texts>,
    #[serde(flatten)]
    common: Common,
}

#[derive(Clone, Debug, Deserialize)]
struct Generate {
    spec: String,
    size: Option<usize>,
    shards: u32,
    memory: Option<String>,
    #[serde(flatten)]
    common: Common,
}

#[derive(Clone, Debug, Deserialize)]
struct Synthesize {
    /// A preset, or a file with a specification.
    layers: String,
    /// Operators to judge in each round.
    operators: u32,
    /// Tasks that share those of a round.
    tasks: u32,
    /// Rounds; each draws operators with what the one before found out.
    #[serde(default = "one")]
    rounds: u32,
    #[serde(flatten)]
    common: Common,
}

fn one() -> u32 {
    1
}

impl Jobs {
    /// Reads a file of jobs.
    ///
    /// # Errors
    ///
    /// It cannot be read, or says something that there is not.
    pub fn read(path: &Path) -> Result<Jobs, Failure> {
        let text = fs::read_to_string(path)
            .map_err(|e| Failure::new(format!("cannot read {}: {e}", path.display())).hint("name a file of jobs, as TOML"))?;
        toml::from_str(&text).map_err(|e: toml::de::Error| {
            let line = e.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            let failure = Failure::new(format!("{}, line {line}: {}", path.display(), e.message()));
            failure.hint("`regraft farm --help` shows what a file of jobs may say")
        })
    }

    /// The farm of these jobs, which were read from `path`.
    ///
    /// # Errors
    ///
    /// The folder does not lie below that of the file.
    pub fn farm(&self, path: &Path) -> Result<Farm, Failure> {
        let base = regraft_onnx::folder_of(path);
        let base = fs::canonicalize(&base).map_err(|e| Failure::new(format!("cannot open the folder {}: {e}", base.display())))?;
        let name = match &self.folder {
            Some(folder) => folder.clone(),
            None => PathBuf::from(path.file_stem().unwrap_or_default()),
        };
        let is_below = name.components().all(|part| matches!(part, Component::Normal(_))) && name.components().next().is_some();
        let clash = base.join(&name).exists() && !base.join(&name).is_dir();
        match (is_below, clash) {
            (true, false) => Ok(Farm::new(&base, &name)),
            (true, true) => Err(Failure::new(format!("{} is a file, and would be the folder of the farm", name.display()))
                .hint("name another with `folder`")),
            (false, _) => Err(Failure::new(format!("the folder `{}` does not lie below that of {}", name.display(), path.display()))
                .hint("give `folder` relative to the file of jobs, such as \"fast\"; it can be a link")),
        }
    }

    /// The tasks, in the order of the file.
    ///
    /// # Errors
    ///
    /// A file is not there, a pattern matches none, or a value is none of its kind.
    pub fn tasks(&self, farm: &Farm) -> Result<Vec<Task>, Failure> {
        self.check_keys()?;
        let mut plan = Plan { farm, digests: BTreeMap::new(), tasks: Vec::new() };
        self.optimize.iter().try_for_each(|job| plan.optimize(job))?;
        self.bench.iter().try_for_each(|job| plan.bench(job))?;
        self.generate.iter().try_for_each(|job| plan.generate(job))?;
        self.synthesize.iter().try_for_each(|job| plan.synthesize(job))?;
        self.policy.iter().try_for_each(|job| plan.policy(job))?;
        if plan.tasks.is_empty() {
            return Err(Failure::new("the file of jobs has none")
                .hint("add a table [[optimize]], [[bench]], [[generate]], [[synthesize]] or [[policy]]"));
        }
        let mut seen = std::collections::BTreeSet::new();
        plan.tasks.retain(|task| seen.insert(task.id.clone()));
        Ok(plan.tasks)
    }
}

impl Jobs {
    /// Fails if a table has a key that there is not.
    fn check_keys(&self) -> Result<(), Failure> {
        let optimize = self.optimize.iter().map(|job| ("optimize", &job.common));
        let bench = self.bench.iter().map(|job| ("bench", &job.common));
        let generate = self.generate.iter().map(|job| ("generate", &job.common));
        let synthesize = self.synthesize.iter().map(|job| ("synthesize", &job.common));
        let policy = self.policy.iter().map(|job| ("policy", &job.common));
        let unknown = optimize
            .chain(bench)
            .chain(generate)
            .chain(synthesize)
            .chain(policy)
            .find_map(|(table, common)| Some((table, common.unknown.keys().next()?)));
        unknown.map_or(Ok(()), |(table, key)| {
            Err(Failure::new(format!("[[{table}]] has no key `{key}`")).hint("`regraft farm --help` shows what a file of jobs may say"))
        })
    }
}

/// Tasks being planned.
struct Plan<'a> {
    farm: &'a Farm,
    digests: BTreeMap<String, String>,
    tasks: Vec<Task>,
}

impl Plan<'_> {
    fn optimize(&mut self, job: &Optimize) -> Result<(), Failure> {
        let targets: Vec<Option<&String>> =
            if job.targets.list().is_empty() { vec![None] } else { job.targets.list().iter().map(Some).collect() };
        if job.models.list().is_empty() {
            return Err(Failure::new("an [[optimize]] has no models").hint("name files or patterns: \"models/*.onnx\""));
        }
        for model in self.files(job.models.list())? {
            for (sizes, sized) in sizes(&job.sizes)? {
                for threads in threads(&job.common)? {
                    for target in &targets {
                        let inputs = self.inputs(&[&model], &job.common)?;
                        let mut options = sized.clone();
                        options.extend(target.map(|target| format!("--target={target}")));
                        options.extend(common(&job.common, threads)?);
                        let output = format!("{}.onnx", stem(&model));
                        let labels =
                            Labels { subject: stem(&model), sizes: sizes.clone(), threads, target: target.cloned().unwrap_or_default() };
                        let report = format!("{}.report.json", stem(&model));
                        self.add(Kind::Optimize, labels, &job.common, inputs, Some(output.clone()), |folder| {
                            let mut arguments = vec!["optimize".into(), model.clone(), format!("--output={folder}/{output}")];
                            arguments.push(format!("--report={folder}/{report}"));
                            arguments.extend(options.clone());
                            arguments
                        });
                    }
                }
            }
        }
        Ok(())
    }

    fn bench(&mut self, job: &Bench) -> Result<(), Failure> {
        let input = self.files(std::slice::from_ref(&job.input))?;
        let [input] = input.as_slice() else {
            return Err(Failure::new(format!("`{}` names {} files", job.input, input.len())).hint("one input for each [[bench]]"));
        };
        for candidate in self.files(job.candidates.list())? {
            for (sizes, sized) in sizes(&job.sizes)? {
                for threads in threads(&job.common)? {
                    let inputs = self.inputs(&[input, &candidate], &job.common)?;
                    let mut options = sized.clone();
                    options.extend(common(&job.common, threads)?);
                    let subject = format!("{} {}", stem(input), stem(&candidate));
                    let labels = Labels { subject, sizes: sizes.clone(), threads, target: String::new() };
                    self.add(Kind::Bench, labels, &job.common, inputs, None, |_| {
                        let mut arguments = vec!["bench".into(), input.clone(), candidate.clone(), "--json".into()];
                        arguments.extend(options.clone());
                        arguments
                    });
                }
            }
        }
        Ok(())
    }

    fn generate(&mut self, job: &Generate) -> Result<(), Failure> {
        if !(1..=MOST_SHARDS).contains(&job.shards) {
            return Err(Failure::new(format!("{} shards are not between 1 and {MOST_SHARDS}", job.shards)).hint("each is a task"));
        }
        if job.common.budget.is_some() {
            return Err(Failure::new("[[generate]] has no budget").hint("more shards make smaller tasks"));
        }
        let memory = job.memory.as_deref().unwrap_or("1G");
        checked("memory", memory, parse_bytes(memory).err())?;
        // A shipped specification has no file.
        let is_file = self.farm.base().join(&job.spec).is_file();
        let named: Vec<&String> = if is_file { vec![&job.spec] } else { Vec::new() };
        let inputs = self.inputs(&named, &job.common)?;
        let mut options: Vec<String> = job.size.map(|size| format!("--size={size}")).into_iter().collect();
        options.push(format!("--memory={memory}"));
        let [threads] = threads(&job.common)?[..] else {
            return Err(Failure::new("[[generate]] has several numbers of threads").hint("give one"));
        };
        options.push(format!("--threads={}", threads.unwrap_or(1)));
        options.extend(job.common.options.list().iter().cloned());
        let subject = match job.size {
            Some(size) => format!("{} size {size}", stem(&job.spec)),
            None => stem(&job.spec),
        };
        let spec = job.spec.clone();
        let labels = |sizes: String| Labels { subject: subject.clone(), sizes, threads, target: String::new() };
        let values = self.add(Kind::Values, labels(String::new()), &job.common, inputs.clone(), Some("values".into()), |folder| {
            let mut arguments = vec!["rules".into(), "generate".into(), spec.clone(), format!("--values={folder}/values")];
            arguments.extend(options.clone());
            arguments
        });
        let file = format!("{}/{values}/values", self.farm.results());
        let mut shared = inputs.clone();
        shared.push(Input::made(&file));
        let mut parts = Vec::new();
        for shard in 1..=job.shards {
            let labels = labels(format!("{shard}/{}", job.shards));
            let id = self.add(Kind::Generate, labels, &job.common, shared.clone(), Some("part".into()), |folder| {
                let mut arguments = vec!["rules".into(), "generate".into(), spec.clone(), format!("--shard={shard}/{}", job.shards)];
                arguments.extend([format!("--values={file}"), format!("--output={folder}/part")]);
                arguments.extend(options.clone());
                arguments
            });
            self.needs(vec![values.clone()]);
            parts.push(id);
        }
        let files: Vec<String> = parts.iter().map(|id| format!("{}/{id}/part", self.farm.results())).collect();
        let mut inputs = inputs;
        inputs.extend(files.iter().map(|path| Input::made(path)));
        let output = format!("{}.pairs", stem(&job.spec));
        self.add(Kind::Merge, labels("all".into()), &job.common, inputs, Some(output.clone()), |folder| {
            let mut arguments = vec!["rules".into(), "generate".into(), spec.clone(), format!("--output={folder}/{output}")];
            arguments.extend(options.clone());
            arguments.push("--merge".into());
            arguments.extend(files.clone());
            arguments
        });
        self.needs(parts);
        Ok(())
    }

    fn synthesize(&mut self, job: &Synthesize) -> Result<(), Failure> {
        if !(1..=job.operators).contains(&job.tasks) || job.rounds == 0 {
            let cause =
                format!("{} operators in {} tasks, {} rounds: there are none, or fewer than tasks", job.operators, job.tasks, job.rounds);
            return Err(Failure::new(cause).hint("`operators` are judged in each round, in `tasks` equal parts"));
        }
        if job.common.budget.is_some() {
            return Err(Failure::new("[[synthesize]] has no budget").hint("`operators` and `rounds` say how much is done"));
        }
        // A preset has no file.
        let is_file = self.farm.base().join(&job.layers).is_file();
        let named: Vec<&String> = if is_file { vec![&job.layers] } else { Vec::new() };
        let inputs = self.inputs(&named, &job.common)?;
        let layers = if is_file { format!("--spec={}", job.layers) } else { format!("--preset={}", job.layers) };
        let [threads] = threads(&job.common)?[..] else {
            return Err(Failure::new("[[synthesize]] has several numbers of threads").hint("give one"));
        };
        let options = job.common.options.list();
        let subject = stem(&job.layers);
        let labels = |sizes: String| Labels { subject: subject.clone(), sizes, threads, target: String::new() };
        let made = |id: &String, file: &str, farm: &Farm| format!("{}/{id}/{file}", farm.results());
        let mut before: Option<String> = None;
        for round in 1..=job.rounds {
            let known: Vec<String> = before.iter().map(|id| made(id, "front.json", self.farm)).collect();
            let mut reads = inputs.clone();
            reads.extend(known.iter().map(|path| Input::made(path)));
            let draw = self.add(Kind::Draw, labels(format!("round {round}")), &job.common, reads, Some("operators.txt".into()), |folder| {
                let mut arguments = vec!["synthesize".into(), layers.clone(), format!("--draw={}", job.operators)];
                arguments.extend([format!("--seed={round}"), format!("--output={folder}/operators.txt")]);
                arguments.extend(known.iter().map(|path| format!("--known={path}")));
                arguments
            });
            self.needs(before.iter().cloned().collect());
            let drawn = made(&draw, "operators.txt", self.farm);
            let mut reads = inputs.clone();
            reads.push(Input::made(&drawn));
            let mut parts = Vec::new();
            for part in 1..=job.tasks {
                let labels = labels(format!("round {round} {part}/{}", job.tasks));
                parts.push(self.add(Kind::Judge, labels, &job.common, reads.clone(), Some("part.json".into()), |folder| {
                    let mut arguments = vec!["synthesize".into(), layers.clone(), format!("--operators={drawn}")];
                    arguments.extend([format!("--part={part}/{}", job.tasks), format!("--report={folder}/part.json")]);
                    arguments.push(format!("--store={folder}/runs.db"));
                    arguments.extend(threads.map(|threads| format!("--threads={threads}")));
                    arguments.extend(options.iter().cloned());
                    arguments
                }));
                self.keeps("runs.db");
                self.needs(vec![draw.clone()]);
            }
            let mut joined: Vec<String> = parts.iter().map(|id| made(id, "part.json", self.farm)).collect();
            joined.extend(known);
            let mut reads = inputs.clone();
            reads.extend(joined.iter().map(|path| Input::made(path)));
            let join = self.add(Kind::Join, labels(format!("round {round}")), &job.common, reads, Some("front.json".into()), |folder| {
                let mut arguments = vec!["synthesize".into(), layers.clone(), format!("--report={folder}/front.json")];
                arguments.push(format!("--emit={folder}/operators"));
                arguments.extend(joined.iter().map(|path| format!("--join={path}")));
                arguments
            });
            self.needs(parts.into_iter().chain(before.take()).collect());
            before = Some(join);
        }
        Ok(())
    }

    /// Says what the task that was added last needs.
    fn needs(&mut self, needs: Vec<String>) {
        if let Some(task) = self.tasks.last_mut() {
            task.needs = needs;
        }
    }

    /// Says that a file of the task that was added last is a database, with which its command goes
    /// on where it was.
    fn keeps(&mut self, file: &str) {
        if let Some(task) = self.tasks.last_mut() {
            task.keeps.push(file.to_owned());
        }
    }

    fn add(
        &mut self,
        kind: Kind,
        labels: Labels,
        common: &Common,
        inputs: Vec<Input>,
        output: Option<String>,
        arguments: impl Fn(&str) -> Vec<String>,
    ) -> String {
        let is_timed = matches!(kind, Kind::Optimize | Kind::Bench | Kind::Judge) && !is_untimed(common);
        let threads = labels.threads.map(usize::from);
        let cores = Need { cores: common.cores.or(if is_timed { threads } else { Some(threads.unwrap_or(1)) }), whole: is_timed };
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let task = Task {
            id: String::new(),
            kind,
            labels,
            arguments: Vec::new(),
            inputs,
            needs: Vec::new(),
            output,
            keeps: Vec::new(),
            cores,
            version,
        };
        let task = task.named(&self.farm.results(), arguments);
        let id = task.id.clone();
        self.tasks.push(task);
        id
    }

    /// The files that patterns match, relative to the folder of the jobs, sorted for each.
    fn files(&self, patterns: &[String]) -> Result<Vec<String>, Failure> {
        let mut found = Vec::new();
        for pattern in patterns {
            let whole = format!("{}/{pattern}", glob::Pattern::escape(&self.farm.base().to_string_lossy()));
            let whole = if Path::new(pattern).is_absolute() { pattern.clone() } else { whole };
            let paths = glob::glob(&whole).map_err(|e| Failure::new(format!("`{pattern}` is no pattern of files: {e}")))?;
            let mut matched: Vec<String> = Vec::new();
            // Whoever means what tasks made, names its folder.
            let is_source = |path: &PathBuf| path.is_file() && !(pattern.contains("**") && is_in_farm(path));
            for path in paths.flatten().filter(is_source) {
                let relative = if Path::new(pattern).is_absolute() { path } else { relative(&path, self.farm.base()) };
                matched.push(relative.to_string_lossy().into_owned());
            }
            if matched.is_empty() {
                let failure = Failure::new(format!("no file is `{pattern}`, seen from {}", self.farm.base().display()));
                let is_folder = self.farm.base().join(pattern).is_dir();
                return Err(failure.hint(if is_folder {
                    "it is a folder; add `/*.onnx`"
                } else {
                    "paths are relative to the file of jobs"
                }));
            }
            matched.sort();
            found.extend(matched.into_iter().filter(|path| !found.contains(path)).collect::<Vec<_>>());
        }
        Ok(found)
    }

    /// What a command reads: these files with the weights beside them, and those of its options.
    fn inputs(&mut self, files: &[&String], common: &Common) -> Result<Vec<Input>, Failure> {
        let mut paths: Vec<String> = Vec::new();
        for file in files {
            paths.push((*file).clone());
            if Path::new(file).extension().is_some_and(|e| e == "onnx") {
                let folder = Path::new(file).parent().unwrap_or(Path::new(""));
                let weights = data_files(&self.farm.base().join(file));
                paths.extend(weights.iter().map(|name| folder.join(name).to_string_lossy().into_owned()));
            }
        }
        if !common.files.list().is_empty() {
            paths.extend(self.files(common.files.list())?);
        }
        paths.into_iter().map(|path| Ok(Input { digest: self.digest(&path)?, path })).collect()
    }

    fn digest(&mut self, path: &str) -> Result<String, Failure> {
        if let Some(known) = self.digests.get(path) {
            return Ok(known.clone());
        }
        let digest = digest(&self.farm.base().join(path))?;
        self.digests.insert(path.to_owned(), digest.clone());
        Ok(digest)
    }
}

/// `path`, seen from `base`; both without links.
fn relative(path: &Path, base: &Path) -> PathBuf {
    let shared = path.components().zip(base.components()).take_while(|(a, b)| a == b).count();
    let up = base.components().count() - shared;
    std::iter::repeat_n(Component::ParentDir, up).chain(path.components().skip(shared)).collect()
}

fn stem(path: &str) -> String {
    Path::new(path).file_stem().map_or_else(|| path.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

fn is_untimed(common: &Common) -> bool {
    common.options.list().iter().any(|option| UNTIMED.contains(&option.as_str()))
}

/// The numbers of threads to try; what times nothing uses one by default.
fn threads(common: &Common) -> Result<Vec<Option<u16>>, Failure> {
    if common.threads.list().contains(&0) || common.cores == Some(0) {
        return Err(Failure::new("there are no zero threads or cores").hint("give 1 or more, or none for all that there are"));
    }
    Ok(if common.threads.list().is_empty() { vec![None] } else { common.threads.list().iter().copied().map(Some).collect() })
}

fn common(common: &Common, threads: Option<u16>) -> Result<Vec<String>, Failure> {
    let mut options = Vec::new();
    if let Some(budget) = &common.budget {
        checked("budget", budget, parse_duration(budget).err())?;
        options.push(format!("--budget={budget}"));
    }
    let threads = threads.or(is_untimed(common).then_some(1));
    options.extend(threads.map(|threads| format!("--threads={threads}")));
    options.extend(common.options.list().iter().cloned());
    Ok(options)
}

/// Fails if a value of the file is none of its kind: before a task does.
fn checked(key: &str, value: &str, error: Option<String>) -> Result<(), Failure> {
    error.map_or(Ok(()), |e| Err(Failure::new(format!("{key} = \"{value}\": {e}"))))
}

/// Each choice of sizes: as text for people, and as options of a command.
fn sizes(given: &[Texts]) -> Result<Vec<(String, Vec<String>)>, Failure> {
    if given.is_empty() {
        return Ok(vec![(String::new(), Vec::new())]);
    }
    let choice = |texts: &Texts| {
        let mut options = Vec::new();
        for text in texts.list() {
            if parse_shape(text).is_ok() {
                options.push(format!("--shape={text}"));
            } else {
                checked("sizes", text, parse_binds(text).err().map(|_| "write x:1,3,224,224 or N=8".into()))?;
                options.push(format!("--bind={text}"));
            }
        }
        Ok((texts.list().join(" "), options))
    };
    given.iter().map(choice).collect()
}
