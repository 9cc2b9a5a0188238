//! The command line.

use std::path::PathBuf;

/// What the command line asks for.
pub struct Options {
    /// The SQLite file.
    pub database: PathBuf,
    /// A provider's model instead of the rules.
    pub model: Option<String>,
    /// Who asks.
    pub requester: String,
    /// Who decides at this terminal.
    pub approver: String,
    /// A call to approve by its id, `RUN/CALL`, instead of a conversation.
    pub approve: Option<String>,
    /// What the requester says.
    pub text: Option<String>,
}

pub const USAGE: &str = "\
usage: refund_desk [OPTIONS] [\"Refund order ord-1042\"]

Without a text, continues with what is pending.

options:
  --db FILE          the SQLite file (refund_desk.db)
  --model NAME       a provider's model, such as openai/gpt-5-mini (needs --features genai)
  --requester NAME   on whose behalf the agent acts, a clerk (alice)
  --approver NAME    who decides at this terminal, of finance (fiona)
  --approve RUN/CALL approve one call by the id on its card, and continue its run

at a prompt:
  a                  approve        d [REASON]   decline
  m AMOUNT           amend amount   q            leave it pending";

impl Options {
    /// Reads the arguments.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            database: PathBuf::from("refund_desk.db"),
            model: None,
            requester: "alice".to_owned(),
            approver: "fiona".to_owned(),
            approve: None,
            text: None,
        };
        while let Some(argument) = arguments.next() {
            let mut value = || {
                arguments
                    .next()
                    .ok_or_else(|| format!("`{argument}` needs a value\n\n{USAGE}"))
            };
            match argument.as_str() {
                "--db" => options.database = PathBuf::from(value()?),
                "--model" => options.model = Some(value()?),
                "--requester" => options.requester = value()?,
                "--approver" => options.approver = value()?,
                "--approve" => options.approve = Some(value()?),
                "--help" | "-h" => return Err(USAGE.to_owned()),
                flag if flag.starts_with("--") => {
                    return Err(format!("there is no option `{flag}`\n\n{USAGE}"));
                }
                _ if options.text.is_none() => options.text = Some(argument),
                _ => {
                    return Err(format!(
                        "`{argument}` is one text too many; quote it\n\n{USAGE}"
                    ));
                }
            }
        }
        Ok(options)
    }
}
