//! A refund desk: an agent that stops for an approval and continues, in this process or another.
//!
//! See the README beside this file.

#![allow(
    missing_docs,
    unreachable_pub,
    reason = "a program: nothing outside sees it"
)]

mod card;
mod desk;
mod options;
mod script;
mod shop;
mod terminal;

use std::{error::Error, io::Write as _, process::ExitCode};

use agentkit::{
    agent::{AgentBuilder, Suspended},
    approval::{PendingCall, Settlement, Verdict},
    call::RunId,
    prelude::*,
    run::{DecideError, Running},
    store::{Page, RunFilter, RunStatus},
};
use card::{card, inert};
use desk::{City, RefundDesk, RefundDeskPending};
use options::Options;
use shop::Shop;
use terminal::{Said, Terminal};

type Failure = Box<dyn Error>;
type RefundArgs = <desk::issue_refund as Tool>::Args;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(usage) => {
            eprintln!("{usage}");
            return ExitCode::from(2);
        }
    };
    match run(options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                eprintln!("  because: {cause}");
                source = cause.source();
            }
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<(), Failure> {
    let url = format!("sqlite://{}?mode=rwc", options.database.display());
    let store = Store::open(&url).await?;
    let shop = Shop::open(&url).await?;
    let builder = RefundDesk::builder().store(store).ctx(shop);
    let builder = match &options.model {
        None => {
            println!(
                "(offline: a few rules stand in for the model; --model openai/… uses a provider)"
            );
            builder.model(script::clerk())
        }
        Some(name) => provider(builder, name)?,
    };
    // Identities of this demonstration; a real program takes them from its authentication.
    let mut clerk = Clerk {
        desk: builder.build()?,
        approver: Principal::new(&options.approver, "terminal").role("finance"),
        terminal: Terminal::new(),
    };
    if let Some(id) = &options.approve {
        return clerk.approve_by_id(id).await;
    }
    let waiting = clerk.continue_waiting().await?;
    match options.text {
        Some(text) => {
            let requester = Principal::new(&options.requester, "terminal").role("clerk");
            let running = clerk.desk.stream(Input::new(requester, text)).await?;
            clerk.follow(running).await
        }
        None if waiting == 0 => {
            println!("Nothing is pending. Ask for something, such as \"Refund order ord-1042\".");
            Ok(())
        }
        None => Ok(()),
    }
}

type Builder = AgentBuilder<RefundDesk>;

#[cfg(feature = "genai")]
fn provider(builder: Builder, name: &str) -> Result<Builder, Failure> {
    use agentkit::model::{Retrying, genai::GenaiModel};
    println!("(model: {name})");
    Ok(builder.model(Retrying::new(GenaiModel::new(name)?)))
}

#[cfg(not(feature = "genai"))]
fn provider(_: Builder, name: &str) -> Result<Builder, Failure> {
    Err(format!("this build has no providers for `{name}`; run it with `--features genai`").into())
}

/// The desk with the person who decides.
struct Clerk {
    desk: Hosted<RefundDesk>,
    approver: Principal,
    terminal: Terminal,
}

impl Clerk {
    /// Takes up what an earlier process left: runs that wait for people, runs whose model
    /// failed, and runs whose process died.
    async fn continue_waiting(&mut self) -> Result<usize, Failure> {
        let mut found = 0;
        for status in [
            RunStatus::Suspended,
            RunStatus::Interrupted,
            RunStatus::Running,
        ] {
            let filter = RunFilter::default().agent("refund-desk").status(status);
            let mut page = Page::default();
            loop {
                let runs = self.desk.runtime().store().runs(&filter, &page).await?;
                let Some(last) = runs.last() else { break };
                page.after = Some(last.run.id.clone());
                for summary in &runs {
                    found += 1;
                    let run = &summary.run;
                    println!(
                        "── {} since {}: run {} for {}",
                        run.status,
                        run.created_at,
                        run.id,
                        inert(&run.requester.id)
                    );
                    let running = self.desk.resume(&run.id).await?;
                    self.follow(running).await?;
                }
            }
        }
        Ok(found)
    }

    /// Follows a run until it is over or everything that waits is left pending.
    async fn follow(&mut self, mut running: Running) -> Result<(), Failure> {
        loop {
            let run = running.run().clone();
            while let Some(event) = running.next().await {
                show(&event)?;
            }
            match Outcome::<RefundDesk>::of(running.ending().await?) {
                Outcome::Suspended(suspended) => {
                    if !self.decide_all(suspended).await? {
                        println!("Left pending. Start again without a text to go on.");
                        return Ok(());
                    }
                    running = self.desk.resume(&run).await?;
                }
                Outcome::Finished { text, .. } => {
                    if !text.is_empty() {
                        println!();
                    }
                    return Ok(());
                }
                _ => return Ok(()),
            }
        }
    }

    /// Puts everything that waits before the person. `false` when all of it was left.
    async fn decide_all(&mut self, suspended: Suspended<RefundDesk>) -> Result<bool, Failure> {
        let mut decided = false;
        for error in &suspended.unfit {
            println!("A call does not fit the desk any more: {error}");
            decided = true;
        }
        for pending in suspended.pending {
            decided |= self.decide(pending).await?;
        }
        for call in suspended.in_doubt {
            decided |= self.settle(call).await?;
        }
        Ok(decided)
    }

    async fn decide(&mut self, pending: RefundDeskPending) -> Result<bool, Failure> {
        match pending {
            RefundDeskPending::IssueRefund(Pending::Approval(approval)) => {
                let title = format!(
                    "APPROVAL: refund {} of order {}",
                    script::money(approval.args.amount_cents),
                    inert(&approval.args.order_id)
                );
                println!("\n{}", card(approval.call(), &title));
                loop {
                    let decision = match self
                        .ask("approve, decline or amend (a / d reason / m amount / q)?")
                        .await?
                    {
                        Said::Approve => approval.approve(),
                        Said::Decline(reason) => approval.decline(reason.unwrap_or_default()),
                        Said::Amend(amount) => match script::parse_money(&amount) {
                            Some(amount_cents) => {
                                let order_id = approval.args.order_id.clone();
                                approval.amend(RefundArgs {
                                    order_id,
                                    amount_cents,
                                })?
                            }
                            None => {
                                println!(
                                    "`{}` is not an amount; write it as 20.00",
                                    inert(&amount)
                                );
                                continue;
                            }
                        },
                        Said::Quit => return Ok(false),
                        Said::Text(_) => continue,
                    };
                    return self.hand_in(&self.approver, decision).await;
                }
            }
            RefundDeskPending::FindOrder(Pending::Approval(approval)) => {
                println!("\n{}", card(approval.call(), "APPROVAL: look up an order"));
                self.approve_or_decline(approval.call().clone()).await
            }
            RefundDeskPending::GetWeather(Pending::Approval(approval)) => {
                println!(
                    "\n{}",
                    card(approval.call(), "APPROVAL: look at the weather")
                );
                self.approve_or_decline(approval.call().clone()).await
            }
            RefundDeskPending::GetWeather(Pending::Question(question)) => {
                println!("\n? {}", inert(&question.payload.question));
                // The agent asks whom it acts for, not who approves.
                let user = question.call().requester.clone();
                let prompt = format!("{}: answer (or q)?", inert(&user.id));
                match self.terminal.ask(&prompt).await? {
                    Said::Text(city) => self.hand_in(&user, question.answer(City { city })?).await,
                    _ => Ok(false),
                }
            }
        }
    }

    async fn approve_or_decline(&mut self, call: PendingCall) -> Result<bool, Failure> {
        let verdict = match self.ask("approve or decline (a / d reason / q)?").await? {
            Said::Approve => Verdict::Approve,
            Said::Decline(reason) => Verdict::Decline { reason },
            _ => return Ok(false),
        };
        self.hand_in(&self.approver, decision(&call, verdict)).await
    }

    /// A call whose process died while it ran: only a person can find out what happened.
    async fn settle(&mut self, call: PendingCall) -> Result<bool, Failure> {
        println!(
            "\n{}",
            card(&call, "IN DOUBT: the process died while this call ran")
        );
        let settlement = match self
            .ask("did it take effect (y / n / r to run it again / q)?")
            .await?
        {
            Said::Text(word) if word == "y" => Settlement::Succeeded {
                result: "it took effect, says a person".to_owned(),
            },
            Said::Text(word) if word == "n" => Settlement::Failed {
                message: "it did not take effect, says a person".to_owned(),
            },
            Said::Text(word) if word == "r" => Settlement::Retry,
            _ => return Ok(false),
        };
        self.hand_in(&self.approver, decision(&call, Verdict::Settle(settlement)))
            .await
    }

    async fn ask(&mut self, prompt: &str) -> std::io::Result<Said> {
        let prompt = format!("{}: {prompt}", self.approver.id);
        self.terminal.ask(&prompt).await
    }

    async fn hand_in(&self, by: &Principal, decision: Decision) -> Result<bool, Failure> {
        match self.desk.decide(by, decision).await {
            Ok(decided) if decided.repeated => {
                println!(
                    "That was decided before: {} by {} at {}; the call is {}.",
                    decided.decision.kind,
                    inert(&decided.decision.approver),
                    decided.decision.at,
                    decided.state
                );
                Ok(true)
            }
            Ok(decided) if decided.still_needed > 0 => {
                println!("Recorded; {} more must approve.", decided.still_needed);
                Ok(false)
            }
            Ok(decided) => {
                println!("Recorded: {}.", decided.decision.kind);
                Ok(true)
            }
            Err(error @ DecideError::Store(_)) => Err(error.into()),
            Err(error) => {
                println!("Refused: {error}.");
                let mut source = error.source();
                while let Some(cause) = source {
                    println!("  because: {cause}");
                    source = cause.source();
                }
                // What was decided elsewhere, or is over, lets the run go on.
                Ok(matches!(
                    error,
                    DecideError::AlreadyDecided { .. } | DecideError::Expired { .. }
                ))
            }
        }
    }

    /// Approves one call by the id on its card, whatever its state, and continues its run.
    async fn approve_by_id(&mut self, id: &str) -> Result<(), Failure> {
        let malformed = || format!("`{id}` is not the id of a call; copy RUN/CALL from its card");
        let (run, call) = id.split_once('/').ok_or_else(malformed)?;
        let run: RunId = run.parse()?;
        let stored = self.desk.runtime().store().calls(&run).await?;
        let stored = stored
            .iter()
            .find(|stored| stored.id.as_str() == call)
            .ok_or_else(|| format!("there is no call `{}` in run `{run}`", inert(call)))?;
        let fingerprint = stored
            .fingerprint
            .ok_or_else(|| format!("the call `{}` never waited for an approval", stored.id))?;
        let decision = Decision {
            run: run.clone(),
            call: stored.id.clone(),
            fingerprint,
            verdict: Verdict::Approve,
        };
        self.hand_in(&self.approver, decision).await?;
        let running = self.desk.resume(&run).await?;
        self.follow(running).await
    }
}

fn decision(call: &PendingCall, verdict: Verdict) -> Decision {
    Decision {
        run: call.run.clone(),
        call: call.call.clone(),
        fingerprint: call.fingerprint,
        verdict,
    }
}

fn show(event: &RunEvent) -> Result<(), Failure> {
    match event {
        RunEvent::TextDelta { text } => {
            print!("{}", inert(text));
            std::io::stdout().flush()?;
        }
        RunEvent::ToolCall {
            tool, arguments, ..
        } => {
            let arguments = arguments
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default();
            println!("\n→ {}({})", inert(tool), inert(&arguments));
        }
        RunEvent::ToolEnded {
            tool,
            state,
            outcome,
            ..
        } => {
            println!("← {} {state}: {}", inert(tool), inert(outcome));
        }
        _ => {}
    }
    Ok(())
}
