//! Checks a declaration and makes the model of an agent.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote};
use syn::{Expr, Ident, ItemStruct, LitStr, ext::IdentExt as _};

use super::{
    defaults,
    model::{Agent, Dynamic, Members},
    variants::Names,
};
use crate::{
    docs::Docs,
    list::{self, ListedTool},
    name,
    options::{self, Entry, EntryValue},
    problems::Problems,
};

const KEYS: [&str; 9] = [
    "name",
    "model",
    "instructions",
    "tools",
    "agents",
    "dynamic_tools",
    "policy",
    "policies",
    "crate",
];

/// Makes the model. It is complete only if no problem was added.
pub(super) fn model(item: &ItemStruct, list: TokenStream, problems: &mut Problems) -> Agent {
    let keys: Vec<&str> = KEYS.into_iter().chain(defaults::KEYS).collect();
    let entries = options::entries(list, "#[agent]", &keys, problems);
    let find = |key: &str| entries.iter().find(|entry| entry.key.unraw() == key);
    let root = options::root(find("crate"), problems);
    let agent_name = required(find("name"), "name", "\"refund-desk\"", problems);
    if let Some(literal) = &agent_name {
        check_name(literal, problems);
    }
    let model = required(find("model"), "model", "\"provider/model\"", problems);
    if let Some(literal) = &model {
        check_model(literal, problems);
    }
    let instructions = required(
        find("instructions"),
        "instructions",
        "\"You are …\"",
        problems,
    );
    let dynamic =
        find("dynamic_tools").map_or_else(Dynamic::default, |entry| dynamic(entry, problems));
    let mut names = Names::with_other(dynamic.is_some());
    let listed = find("tools").map_or_else(Vec::new, |entry| tools(entry, problems));
    let variants = names.of_tools(&listed, problems);
    let tools = Members { listed, variants };
    let listed = find("agents").map_or_else(Vec::new, |entry| agents(entry, problems));
    let variants = names.of_agents(&listed, problems);
    let agents = Members { listed, variants };
    let variable = Ident::new("defaults", Span::mixed_site());
    let defaults = defaults::settings(&root, &entries, &variable, problems);
    let mut docs = Docs::default();
    for attribute in &item.attrs {
        docs.take(attribute);
    }
    let policies = policies(find("policy"), find("policies"), problems);
    let tokens = |value: Option<Expr>| value.map(|value| value.to_token_stream());
    let missing = || quote!("");
    Agent {
        root,
        type_name: item.ident.clone(),
        generics: item.generics.clone(),
        visibility: item.vis.clone(),
        name: tokens(agent_name).unwrap_or_else(missing),
        model: tokens(model).unwrap_or_else(missing),
        instructions: tokens(instructions).unwrap_or_else(missing),
        docs,
        tools,
        agents,
        dynamic,
        defaults,
        policies,
    }
}

fn required(
    entry: Option<&Entry>,
    key: &str,
    example: &str,
    problems: &mut Problems,
) -> Option<Expr> {
    let Some(entry) = entry else {
        problems.at(
            Span::call_site(),
            &format!("the agent has no `{key}`"),
            &format!("add `{key} = {example}`"),
        );
        return None;
    };
    entry.value(example, problems)
}

fn string(value: &Expr) -> Option<LitStr> {
    match value {
        Expr::Lit(literal) => match &literal.lit {
            syn::Lit::Str(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn check_name(value: &Expr, problems: &mut Problems) {
    if let Expr::Lit(_) = value
        && string(value).is_none()
    {
        problems.add(
            value,
            "the name of an agent is a string",
            "write `name = \"refund-desk\"`",
        );
    } else if let Some(literal) = string(value)
        && !name::is_accepted(&literal.value())
    {
        problems.add(
            value,
            &format!("`{}` is no name for an agent", literal.value()),
            name::RULE,
        );
    }
}

fn check_model(value: &Expr, problems: &mut Problems) {
    let fits = |text: &str| {
        text.split_once('/')
            .is_some_and(|(provider, model)| !provider.is_empty() && !model.is_empty())
    };
    let wrong = match (value, string(value)) {
        (_, Some(literal)) => !fits(&literal.value()),
        (Expr::Lit(_), None) => true,
        _ => false,
    };
    if wrong {
        problems.add(
            value,
            "a model is named by its provider and its own name",
            "write `model = \"provider/model\"`, such as `model = \"openai/gpt-5-mini\"`",
        );
    }
}

fn tools(entry: &Entry, problems: &mut Problems) -> Vec<ListedTool> {
    options::bracketed(entry, "find_order, issue_refund", problems)
        .map_or_else(Vec::new, |list| list::tools(list, problems))
}

fn agents(entry: &Entry, problems: &mut Problems) -> Vec<ListedTool> {
    options::bracketed(entry, "DataAgent", problems)
        .map_or_else(Vec::new, |list| list::agents(list, problems))
}

fn dynamic(entry: &Entry, problems: &mut Problems) -> Dynamic {
    let EntryValue::Assigned(value) = &entry.value else {
        return if entry.flag(problems) {
            Dynamic::Builder
        } else {
            Dynamic::None
        };
    };
    match syn::parse2::<syn::LitBool>(value.clone()) {
        Ok(flag) if flag.value => Dynamic::Builder,
        Ok(_) => Dynamic::None,
        Err(_) => entry
            .value::<Expr>("plugins()", problems)
            .map_or(Dynamic::None, |tools| {
                Dynamic::Expression(tools.into_token_stream())
            }),
    }
}

fn policies(one: Option<&Entry>, many: Option<&Entry>, problems: &mut Problems) -> Vec<LitStr> {
    if let (Some(_), Some(many)) = (one, many) {
        problems.add(
            &many.key,
            "the agent has both `policy` and `policies`",
            "list all files in `policies = […]`",
        );
    }
    let mut files = Vec::new();
    if let Some(entry) = one {
        files.extend(entry.value::<LitStr>("\"policies/refund.cedar\"", problems));
    }
    let list =
        many.and_then(|entry| options::bracketed(entry, "\"policies/refund.cedar\"", problems));
    for file in options::split(list.unwrap_or_default()) {
        match syn::parse2::<LitStr>(file.clone()) {
            Ok(file) => files.push(file),
            Err(_) => problems.add(
                file,
                "a policy is given by the path of its file, as a string",
                "write `policies = [\"policies/refund.cedar\"]`; the path starts at this source \
                 file",
            ),
        }
    }
    files
}
