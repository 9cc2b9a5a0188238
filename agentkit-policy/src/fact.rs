//! Facts about the past that policies read in `context.session`: what is declared.
//!
//! The engine types them and checks the values that it is handed; to compute them, durably and in
//! one transaction with the decision, is the host's part.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::attribute::AttributeType;

/// A fact that is computed from earlier calls, under a name by which policies read it:
/// `context.session.NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FactDeclaration {
    /// The attribute of `context.session`, such as `pay_cents_admitted_1h`.
    pub name: String,
    /// What is computed.
    pub kind: FactKind,
    /// The tools whose calls are looked at; for [`FactKind::Unspent`] those that grant.
    pub tools: BTreeSet<String>,
    /// How far back.
    pub window: FactWindow,
    /// Whose calls.
    pub scope: FactScope,
    /// Which arguments an earlier call must share with the one that is decided.
    #[serde(default, skip_serializing_if = "SameArguments::is_any")]
    pub same: SameArguments,
}

impl FactDeclaration {
    /// A fact about calls of one tool with any arguments.
    pub fn new(
        name: impl Into<String>,
        kind: FactKind,
        tool: impl Into<String>,
        window: FactWindow,
        scope: FactScope,
    ) -> Self {
        Self {
            name: name.into(),
            kind,
            tools: BTreeSet::from([tool.into()]),
            window,
            scope,
            same: SameArguments::Any,
        }
    }

    /// Looks at the calls of one more tool.
    pub fn and_tool(mut self, tool: impl Into<String>) -> Self {
        self.tools.insert(tool.into());
        self
    }

    /// Counts only calls that share these arguments with the one that is decided.
    pub fn same<P: Into<String>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.same = SameArguments::Paths(paths.into_iter().map(Into::into).collect());
        self
    }

    /// Counts only calls whose arguments are identical to those of the one that is decided.
    pub fn same_arguments(mut self) -> Self {
        self.same = SameArguments::All;
        self
    }
}

/// What a fact says about the calls that it looks at.
///
/// *Admitted* are calls that are reserved, await approval, are executing, in doubt, succeeded or
/// failed: pessimistic, for caps and forbids. *Ok* are those that succeeded: for prerequisites.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum FactKind {
    /// How many were admitted.
    CountAdmitted,
    /// The sum of a whole number over those admitted.
    SumAdmitted {
        /// The argument that is added up.
        path: ValuePath,
    },
    /// When the last one was admitted; absent where none was.
    LastAdmittedAt,
    /// Whether any was admitted.
    ExistsAdmitted,
    /// How many are reserved, await approval, are executing or in doubt.
    InFlight,
    /// How many succeeded.
    CountOk,
    /// Whether any succeeded.
    ExistsOk,
    /// When the last one succeeded; absent where none did.
    LastOkAt,
    /// The values that those which succeeded had at a path.
    ValuesOk {
        /// The argument, or the part of the output.
        path: ValuePath,
        /// [`AttributeType::String`] or [`AttributeType::Long`].
        of: AttributeType,
    },
    /// How many different values or approvers those which succeeded had.
    DistinctOk {
        /// What is told apart.
        of: Distinct,
    },
    /// The sum of a whole number over those that succeeded.
    SumOk {
        /// The argument, or the part of the output, that is added up.
        path: ValuePath,
    },
    /// How many failed.
    CountFailed,
    /// How many were denied.
    CountDenied,
    /// How many failed or were denied.
    CountFailedOrDenied,
    /// When the last one failed; absent where none did.
    LastFailedAt,
    /// How many grants are left: calls of the tools that succeeded, minus uses that were admitted
    /// and did not fail.
    Unspent {
        /// The tools that use a grant.
        uses: BTreeSet<String>,
    },
}

impl FactKind {
    /// The type under which policies see the fact.
    pub fn value_type(&self) -> AttributeType {
        match self {
            Self::CountAdmitted
            | Self::SumAdmitted { .. }
            | Self::InFlight
            | Self::CountOk
            | Self::DistinctOk { .. }
            | Self::SumOk { .. }
            | Self::CountFailed
            | Self::CountDenied
            | Self::CountFailedOrDenied
            | Self::Unspent { .. } => AttributeType::Long,
            Self::ExistsAdmitted | Self::ExistsOk => AttributeType::Bool,
            Self::LastAdmittedAt | Self::LastOkAt | Self::LastFailedAt => AttributeType::Datetime,
            Self::ValuesOk { of, .. } => match of {
                AttributeType::Long => AttributeType::Longs,
                _ => AttributeType::Strings,
            },
        }
    }

    /// Whether the fact may be absent: a time at which nothing happened yet.
    pub fn is_optional(&self) -> bool {
        self.value_type() == AttributeType::Datetime
    }
}

/// What [`FactKind::DistinctOk`] tells apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Distinct {
    /// The values at a path.
    Values(ValuePath),
    /// The people who approved the calls.
    Approvers {
        /// Leaves out whoever a call was made for.
        excluding_requester: bool,
    },
}

/// Where a value stands in an earlier call: keys joined by dots, such as `order.id`, or a JSON
/// Pointer such as `/order/the.id` where a key holds a dot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValuePath {
    /// In the arguments.
    Input(String),
    /// In the output. Outputs have no schema here: a value that is absent or of another type
    /// counts for nothing.
    Output(String),
}

impl ValuePath {
    /// The value of a path, written as here, in arguments or an output; none where it is absent.
    pub fn value_at<'v>(path: &str, value: &'v serde_json::Value) -> Option<&'v serde_json::Value> {
        keys(path)
            .iter()
            .try_fold(value, |value, key| value.get(key.as_str()))
    }
}

/// The keys of a path.
pub(crate) fn keys(path: &str) -> Vec<String> {
    match path.strip_prefix('/') {
        Some(pointer) => pointer
            .split('/')
            .map(|key| key.replace("~1", "/").replace("~0", "~"))
            .collect(),
        None => path.split('.').map(str::to_owned).collect(),
    }
}

/// Which arguments an earlier call must share with the one that is decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SameArguments {
    /// None: all calls count.
    #[default]
    Any,
    /// Those at these paths, written as in [`ValuePath`].
    Paths(BTreeSet<String>),
    /// All of them.
    All,
}

impl SameArguments {
    fn is_any(&self) -> bool {
        *self == Self::Any
    }
}

/// How far back a fact looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactWindow {
    /// So long before the decision, and at release before the moment of release.
    Last(Duration),
    /// Since the session began.
    Session,
}

impl FactWindow {
    /// A window of so many hours.
    pub fn hours(hours: u64) -> Self {
        Self::Last(Duration::from_hours(hours))
    }

    /// A window of so many minutes.
    pub fn minutes(minutes: u64) -> Self {
        Self::Last(Duration::from_mins(minutes))
    }

    /// The length of the window, if it has one.
    pub fn last(self) -> Option<Duration> {
        match self {
            Self::Last(duration) => Some(duration),
            Self::Session => None,
        }
    }
}

const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

impl fmt::Display for FactWindow {
    /// As Cedar writes durations, such as `1h30m`, or `session`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Last(duration) = self else {
            return f.write_str("session");
        };
        let mut rest = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        if rest == 0 {
            return f.write_str("0ms");
        }
        for (unit, millis) in UNITS {
            let count = rest / millis;
            rest %= millis;
            if count > 0 {
                write!(f, "{count}{unit}")?;
            }
        }
        Ok(())
    }
}

impl std::str::FromStr for FactWindow {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "session" {
            return Ok(Self::Session);
        }
        let fail =
            || format!("`{text}` is not a window, write a duration such as `1h30m`, or `session`");
        let mut units = UNITS.iter();
        let mut millis = 0_u64;
        let mut rest = text;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(fail)?;
            let (count, after) = rest.split_at(digits);
            let letters = after
                .find(|c: char| !c.is_ascii_lowercase())
                .unwrap_or(after.len());
            let (name, after) = after.split_at(letters);
            // Units come in falling order, each at most once.
            let (_, unit) = units.find(|(unit, _)| *unit == name).ok_or_else(fail)?;
            let count: u64 = count.parse().map_err(|_| fail())?;
            millis = count
                .checked_mul(*unit)
                .and_then(|more| millis.checked_add(more))
                .ok_or_else(fail)?;
            rest = after;
        }
        if millis == 0 {
            return Err(fail());
        }
        Ok(Self::Last(Duration::from_millis(millis)))
    }
}

impl Serialize for FactWindow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FactWindow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// Whose calls a fact looks at. A cap that is meant as a security control takes
/// [`Principal`](Self::Principal) or [`Tenant`](Self::Tenant): anyone can open a new session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactScope {
    /// Those of the root run and its sub-agents.
    RunTree,
    /// Those of the thread, or of the root run where there is no thread.
    Session,
    /// Those made for the same person.
    Principal,
    /// Those made for the same tenant.
    Tenant,
}

/// Which facts of `context.session` a host hands in.
///
/// A host that cannot compute a fact must not leave it out and hope: a policy set that reads one
/// of the others does not load, neither at start nor at reload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostFacts {
    /// All that are always present and all that are declared.
    #[default]
    All,
    /// Those with these names only: declared names, and of what is always present `id`, `agent`,
    /// …, `this.admitted`, ….
    Only(BTreeSet<String>),
}

impl HostFacts {
    /// Only the facts with these names.
    pub fn only<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self::Only(names.into_iter().map(Into::into).collect())
    }

    pub(crate) fn holds(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(name),
        }
    }
}
