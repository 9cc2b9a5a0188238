//! Checks a function and makes the model of a tool.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote};
use syn::{Attribute, GenericParam, Ident, LitStr, ReturnType, Safety, Type, ext::IdentExt as _};

use super::{
    model::{Output, Parameter, Source, Suspension, Tool},
    options::Options,
    parameters::{parameters, property_names},
    parse::Item,
    types,
};
use crate::{docs::Docs, name, problems::Problems};

/// Makes the model. It is complete only if no problem was added. `owner` is the type whose method
/// the function is.
pub(super) fn model(
    item: &Item,
    options: &Options,
    owner: Option<&Type>,
    problems: &mut Problems,
) -> Tool {
    let function = &item.signature.ident;
    keywords(item, problems);
    generics(item, problems);
    let name = tool_name(function, options, problems);
    let parameters = parameters(item, owner, problems);
    property_names(&parameters, problems);
    let output = output(item, problems);
    suspension(item, options, &parameters, problems);
    let mut docs = Docs::default();
    let mut conditions = Vec::new();
    let mut shared = Vec::new();
    for attribute in &item.attributes {
        docs.take(attribute);
        if attribute.path().is_ident("cfg") {
            conditions.push(attribute.clone());
        } else if is_shared(attribute) {
            shared.push(attribute.clone());
        }
    }
    let suspension = match (&options.suspend, &options.resume) {
        (Some(suspend), Some(resume)) => Some(Suspension {
            suspend: suspend.clone(),
            resume: resume.clone(),
        }),
        _ => None,
    };
    Tool {
        root: options.root.clone(),
        function: function.clone(),
        call: owner.map_or_else(|| quote!(#function), |owner| quote!(<#owner>::#function)),
        type_name: options
            .type_name
            .clone()
            .unwrap_or_else(|| function.clone()),
        args_name: Ident::new(
            &format!("__AgentkitArgs_{}", function.unraw()),
            Span::call_site(),
        ),
        visibility: item.visibility.clone(),
        conditions,
        shared,
        name,
        docs,
        is_async: item.signature.asyncness.is_some(),
        parameters: parameters
            .into_iter()
            .map(|(parameter, _)| parameter)
            .collect(),
        output,
        suspension,
        approval: options.approval.clone().unwrap_or_default(),
        read_only: options.read_only,
        destructive: options.destructive,
        idempotent: options.idempotent,
        timeout_seconds: options.timeout_seconds,
        labels: options.labels.clone(),
        facts: options.facts.clone(),
    }
}

/// Attributes of the function that hold for its type too.
fn is_shared(attribute: &Attribute) -> bool {
    let hides = attribute.path().is_ident("doc")
        && attribute
            .parse_args::<Ident>()
            .is_ok_and(|argument| argument == "hidden");
    hides || attribute.path().is_ident("deprecated")
}

fn keywords(item: &Item, problems: &mut Problems) {
    let signature = &item.signature;
    if let Safety::Unsafe(keyword) = &signature.safety {
        problems.add(
            keyword,
            "a tool cannot be `unsafe`: nobody upholds its conditions when a model calls it",
            "write a safe function that checks the conditions, and put `#[tool]` on that",
        );
    }
    if let Some(abi) = &signature.abi {
        problems.add(
            abi,
            "a tool cannot have a foreign ABI",
            "remove `extern`, or write a wrapper and put `#[tool]` on that",
        );
    }
    if let Some(variadic) = &signature.variadic {
        problems.add(
            variadic.dots,
            "a tool cannot be variadic: the model must know its arguments",
            "take a `Vec` instead",
        );
    }
}

fn generics(item: &Item, problems: &mut Problems) {
    let generics = &item.signature.generics;
    let types = generics
        .params
        .iter()
        .any(|parameter| !matches!(parameter, GenericParam::Lifetime(_)));
    if types {
        problems.add(
            angle_brackets(generics),
            "a tool cannot be generic: a model calls it without naming types",
            "write a wrapper with concrete types and put `#[tool]` on that",
        );
    }
}

/// The generics with their angle brackets, for spans.
fn angle_brackets(generics: &syn::Generics) -> TokenStream {
    let mut tokens = generics.lt_token.to_token_stream();
    generics.params.to_tokens(&mut tokens);
    generics.gt_token.to_tokens(&mut tokens);
    tokens
}

fn tool_name(function: &Ident, options: &Options, problems: &mut Problems) -> String {
    if let Some(literal) = &options.name {
        return literal.value();
    }
    let name = function.unraw().to_string();
    if !name::is_accepted(&name) {
        problems.add(
            function,
            &format!("`{name}` is no name for a tool that model providers accept"),
            &format!(
                "give it another with `#[tool(name = \"…\")]`: {}",
                name::RULE
            ),
        );
    }
    name
}

fn output(item: &Item, problems: &mut Problems) -> Output {
    let ReturnType::Type(_, ty) = &item.signature.output else {
        return Output::Unit;
    };
    let own: Vec<&Ident> = item
        .signature
        .generics
        .lifetimes()
        .map(|parameter| &parameter.lifetime.ident)
        .collect();
    if let Some(lifetime) = types::named_lifetime(ty)
        && own.contains(&&lifetime.ident)
    {
        problems.add(
            &lifetime,
            "the result of a tool cannot borrow from its arguments by name",
            "return an owned value",
        );
    }
    let only_here = types::impl_trait(ty).is_some()
        || types::named_lifetime(ty).is_some()
        || has_elided_reference(ty);
    if only_here {
        Output::Opaque((**ty).clone())
    } else {
        Output::Named((**ty).clone())
    }
}

/// Whether the type has a reference without a lifetime.
fn has_elided_reference(ty: &Type) -> bool {
    types::nested_reference(ty).is_some_and(|found| {
        let after = found.into_iter().nth(1).map(|tree| tree.to_string());
        after.as_deref() != Some("'")
    })
}

/// Whether question, answer and the parameter for the answer fit together.
fn suspension(
    item: &Item,
    options: &Options,
    parameters: &[(Parameter, Option<LitStr>)],
    problems: &mut Problems,
) {
    let mut answers = parameters
        .iter()
        .filter_map(|(parameter, _)| match parameter.source {
            Source::Resume { span } => Some(span),
            _ => None,
        });
    let first = answers.next();
    for second in answers {
        problems.at(
            second,
            "only one parameter can take the answer",
            "remove `#[resume]` from one of them",
        );
    }
    let declares = options.suspend.is_some() || options.resume.is_some();
    match (first, &options.suspend) {
        (Some(span), _) if !declares => problems.at(
            span,
            "the tool takes an answer but declares no question",
            "add `#[tool(suspend = Question, resume = Answer)]`",
        ),
        (None, Some(_)) if options.resume.is_some() => problems.add(
            &item.signature.ident,
            "the tool asks a question but takes no answer, so it would ask for ever",
            "add a parameter `#[resume] answer: Option<Answer>`",
        ),
        _ => {}
    }
}
