//! A tool that asks something before it can go on, and gets a typed answer.
//!
//! Run it with `cargo run --example ask_city`: the first process-half leaves the run suspended in
//! the database, the second one answers and finishes it, as another process could.

#![allow(
    missing_docs,
    unreachable_pub,
    reason = "a program: nothing outside sees it"
)]

use agentkit::{
    model::scripted::{Reply, ScriptedModel},
    prelude::*,
    store::{Page, RunFilter},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What the tool shows when it asks.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
struct AskCity {
    question: String,
}

/// What it is answered with.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct City {
    city: String,
}

/// Weather for a city. Asks which city when none was given.
#[tool(read_only, suspend = AskCity, resume = City)]
fn get_weather(
    /// Name of the city.
    location: Option<String>,
    #[resume] answer: Option<City>,
) -> Flow<String, AskCity> {
    match location.or(answer.map(|answer| answer.city)) {
        Some(city) => Flow::Done(format!("{city}: 18 °C, light rain")),
        None => Flow::Suspend(AskCity {
            question: "Which city?".to_owned(),
        }),
    }
}

#[agent(
    name = "weather-desk",
    model = "openai/gpt-5-mini",
    instructions = "You tell the weather.",
    tools = [get_weather],
)]
struct WeatherDesk;

/// The offline model: asks the tool, then repeats what it said.
fn model() -> ScriptedModel {
    ScriptedModel::new().answering(|request| match request.last_results() {
        [] => Reply::calls().call("get_weather", &json!({})),
        [result, ..] => Reply::text(format!("The weather is: {}", result.content)),
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "sqlite::memory:".to_owned());
    let store = Store::open(&url).await?;
    let user = Principal::new("alice", "terminal");

    let desk = WeatherDesk::builder()
        .store(store.clone())
        .model(model())
        .build()?;
    let outcome = desk
        .generate(Input::new(user.clone(), "What's the weather?"))
        .await?;
    if let Outcome::Finished { text, .. } = outcome {
        println!("no question was asked: {text}");
        return Ok(());
    }

    // From here on it could be another process, months later: all it needs is the database.
    let desk = WeatherDesk::builder().store(store).model(model()).build()?;
    for suspended in desk
        .suspended_runs(RunFilter::default(), &Page::default())
        .await?
    {
        for pending in suspended.waiting.pending {
            match pending {
                WeatherDeskPending::GetWeather(Pending::Question(question)) => {
                    println!("agent: {}", question.payload.question);
                    let answer = City {
                        city: "San Francisco".to_owned(),
                    };
                    println!("user:  {}", answer.city);
                    desk.decide(&user, question.answer(answer)?).await?;
                }
                WeatherDeskPending::GetWeather(Pending::Approval(approval)) => {
                    desk.decide(&user, approval.approve()).await?;
                }
            }
        }
        if let Outcome::Finished { text, .. } = desk.resume_and_wait(&suspended.record.id).await? {
            println!("agent: {text}");
        }
    }
    Ok(())
}
