//! Checks a function and makes the model of a tool.

use std::collections::BTreeSet;

use proc_macro2::{Span, TokenStream};
use quote::ToTokens as _;
use syn::{
    Attribute, FnArg, GenericParam, Ident, Lifetime, LitStr, Pat, PatType, ReturnType, Safety,
    Type, ext::IdentExt as _, spanned::Spanned as _,
};

use super::{
    model::{Approval, Argument, ArgumentDefault, Output, Parameter, Source, Suspension, Tool},
    options::Options,
    parse::Item,
    types,
};
use crate::{docs::Docs, name, options, problems::Problems};

/// Makes the model. It is complete only if no problem was added.
pub(super) fn model(item: &Item, options: &Options, problems: &mut Problems) -> Tool {
    let function = &item.signature.ident;
    keywords(item, problems);
    generics(item, problems);
    let name = tool_name(function, options, problems);
    let parameters = parameters(item, problems);
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
    let approval = options.approval.as_ref();
    Tool {
        root: options.root.clone(),
        function: function.clone(),
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
        approval: Approval {
            required: approval.is_some_and(|approval| approval.required),
            why: approval.and_then(|approval| approval.why.clone()),
            quorum: approval.map_or(1, |approval| approval.quorum),
            ttl_seconds: approval.and_then(|approval| approval.ttl_seconds),
        },
        read_only: options.read_only,
        destructive: options.destructive,
        idempotent: options.idempotent,
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

/// The parameters, each with its rename's literal for later checks.
fn parameters(item: &Item, problems: &mut Problems) -> Vec<(Parameter, Option<LitStr>)> {
    let mut parameters = Vec::new();
    for input in &item.signature.inputs {
        match input {
            FnArg::Receiver(receiver) => problems.add(
                receiver,
                "a tool cannot be a method",
                "write a free function and pass the state by `#[ctx] state: &State`",
            ),
            FnArg::Typed(typed) => {
                if let Some(parameter) = parameter(typed, problems) {
                    parameters.push(parameter);
                }
            }
        }
    }
    parameters
}

/// The attributes of one parameter, sorted.
#[derive(Default)]
struct Attributes<'a> {
    docs: Docs,
    conditions: Vec<Attribute>,
    forwarded: Vec<Attribute>,
    context: Option<&'a Attribute>,
    resume: Option<&'a Attribute>,
    options: Vec<options::Entry>,
    has_options: Option<&'a Attribute>,
}

const ARGUMENT_KEYS: [&str; 2] = ["default", "rename"];

fn attributes<'a>(typed: &'a PatType, problems: &mut Problems) -> Attributes<'a> {
    let mut sorted = Attributes::default();
    for attribute in &typed.attrs {
        let path = attribute.path();
        if sorted.docs.take(attribute) {
        } else if path.is_ident("cfg") {
            sorted.conditions.push(attribute.clone());
        } else if ["serde", "schemars", "cfg_attr"]
            .iter()
            .any(|name| path.is_ident(name))
        {
            sorted.forwarded.push(attribute.clone());
        } else if path.is_ident("ctx") {
            sorted.context = Some(attribute);
        } else if path.is_ident("resume") {
            sorted.resume = Some(attribute);
        } else if path.is_ident("arg") {
            sorted.has_options = Some(attribute);
            match &attribute.meta {
                syn::Meta::List(list) => sorted.options.extend(options::entries(
                    list.tokens.clone(),
                    "#[arg]",
                    &ARGUMENT_KEYS,
                    problems,
                )),
                _ => problems.add(
                    attribute,
                    "`#[arg]` says nothing",
                    "write `#[arg(default)]`, `#[arg(default = …)]` or `#[arg(rename = \"…\")]`",
                ),
            }
        }
    }
    sorted
}

/// Whether a parameter's attribute is ours, and not to be seen by the compiler.
pub(super) fn is_ours(attribute: &Attribute) -> bool {
    ["doc", "serde", "schemars", "ctx", "resume", "arg"]
        .iter()
        .any(|name| attribute.path().is_ident(name))
}

fn parameter(typed: &PatType, problems: &mut Problems) -> Option<(Parameter, Option<LitStr>)> {
    let attributes = attributes(typed, problems);
    if let (Some(_), Some(resume)) = (attributes.context, attributes.resume) {
        problems.add(
            resume,
            "a parameter is either a context or the answer to a question",
            "remove one of `#[ctx]` and `#[resume]`",
        );
    }
    let special = attributes.context.or(attributes.resume);
    if let Some(special) = special {
        no_argument_attributes(&attributes, special, problems);
    }
    let conditions = attributes.conditions.clone();
    if attributes.context.is_some() {
        let source = context(&typed.ty, problems);
        return Some((Parameter { conditions, source }, None));
    }
    if attributes.resume.is_some() {
        let span = typed.ty.span();
        let source = Source::Resume { span };
        return Some((Parameter { conditions, source }, None));
    }
    let field = field(typed, problems);
    let ty = argument_type(&typed.ty, problems);
    let (rename, default) = argument_options(&attributes.options, problems);
    let (field, ty) = (field?, ty?);
    let argument = Argument {
        field,
        borrowed: types::reference(&typed.ty).is_some(),
        ty,
        forwarded: attributes.forwarded,
        docs: attributes.docs,
        rename: rename.as_ref().map(LitStr::value),
        default,
    };
    let source = Source::Argument(argument);
    Some((Parameter { conditions, source }, rename))
}

fn no_argument_attributes(
    attributes: &Attributes<'_>,
    special: &Attribute,
    problems: &mut Problems,
) {
    let what = special.path().to_token_stream();
    let extra = attributes.has_options.or_else(|| {
        attributes
            .forwarded
            .iter()
            .find(|attribute| !attribute.path().is_ident("cfg_attr"))
    });
    if let Some(extra) = extra {
        problems.add(
            extra,
            &format!("a parameter with `#[{what}]` does not come from the model"),
            &format!("remove this attribute, or remove `#[{what}]`"),
        );
    }
}

/// The name of an argument.
fn field(typed: &PatType, problems: &mut Problems) -> Option<Ident> {
    let mut pattern = &*typed.pat;
    while let Pat::Paren(paren) = pattern {
        pattern = &paren.pat;
    }
    if let Pat::Ident(named) = pattern
        && named.by_ref.is_none()
        && named.subpat.is_none()
    {
        return Some(named.ident.clone());
    }
    let ty = types::text(&typed.ty);
    let name = match pattern {
        Pat::Ident(named) => named.ident.to_string(),
        Pat::Tuple(_) | Pat::Slice(_) => "items".to_owned(),
        Pat::Struct(pattern) => last_segment(&pattern.path),
        Pat::TupleStruct(pattern) => last_segment(&pattern.path),
        _ => "value".to_owned(),
    };
    problems.add(
        pattern,
        "an argument needs a name, since the model calls it by name",
        &format!("write `{name}: {ty}` and take it apart in the body"),
    );
    None
}

fn last_segment(path: &syn::Path) -> String {
    path.segments.last().map_or_else(
        || "value".to_owned(),
        |last| name::snake(&last.ident.unraw().to_string()),
    )
}

/// The type of the field that holds an argument; for a borrowed one, what it borrows.
fn argument_type(ty: &Type, problems: &mut Problems) -> Option<Type> {
    if let Some(found) = types::impl_trait(ty) {
        problems.add(
            found,
            "an argument that comes from the model needs a concrete type",
            "name the type, such as `String`",
        );
        return None;
    }
    let Some(reference) = types::reference(ty) else {
        return nested(ty, ty, problems).then(|| types::owned(ty));
    };
    let owned = types::suggestion(reference);
    if let Some(lifetime) = static_lifetime(reference.lifetime.as_ref()) {
        problems.add(
            lifetime,
            "an argument cannot be `'static`: it lives as long as the call",
            &format!("take `{owned}`, or borrow it without the lifetime"),
        );
        return None;
    }
    if let Some(mutability) = &reference.mutability {
        problems.add(
            mutability,
            "an argument cannot be borrowed mutably: nobody would see the change",
            &format!("take `{owned}`"),
        );
        return None;
    }
    nested(&reference.elem, ty, problems).then(|| types::owned(&reference.elem))
}

fn static_lifetime(lifetime: Option<&Lifetime>) -> Option<&Lifetime> {
    lifetime.filter(|lifetime| lifetime.ident == "static")
}

/// A reference inside of a type has nothing to borrow from.
fn nested(inner: &Type, whole: &Type, problems: &mut Problems) -> bool {
    let Some(found) = types::nested_reference(inner) else {
        return true;
    };
    let owned = types::text(whole)
        .trim_start_matches('&')
        .replace("&str", "String")
        .replace("&'static str", "String")
        .replace('&', "");
    problems.add(
        found,
        "an argument cannot hold a reference inside of another type: there is nothing to borrow \
         from",
        &format!("take the owned form, such as `{owned}`"),
    );
    false
}

fn argument_options(
    entries: &[options::Entry],
    problems: &mut Problems,
) -> (Option<LitStr>, ArgumentDefault) {
    let mut rename = None;
    let mut default = ArgumentDefault::None;
    for entry in entries {
        if entry.key == "rename" {
            rename = entry.value::<LitStr>("\"name\"", problems);
        } else if let options::EntryValue::None = entry.value {
            default = ArgumentDefault::Trait;
        } else if let Some(value) = entry.value::<syn::Expr>("value", problems) {
            default = ArgumentDefault::Expression(value.to_token_stream());
        }
    }
    (rename, default)
}

fn context(ty: &Type, problems: &mut Problems) -> Source {
    if let Some(found) = types::impl_trait(ty) {
        problems.add(
            found,
            "a context is found by its type and needs a concrete one",
            "name the type that is given to the agent's builder",
        );
    }
    let Some(reference) = types::reference(ty) else {
        return Source::Context {
            ty: types::owned(ty),
            borrowed: false,
        };
    };
    if let Some(mutability) = &reference.mutability {
        problems.add(
            mutability,
            "a context is shared and cannot be borrowed mutably",
            "borrow it with `&`, and put what changes behind a lock",
        );
    }
    if let Some(lifetime) = static_lifetime(reference.lifetime.as_ref()) {
        problems.add(
            lifetime,
            "a context cannot be `'static`: it is borrowed for the call",
            "remove the lifetime, or take an `Arc`",
        );
    }
    Source::Context {
        ty: types::owned(&reference.elem),
        borrowed: true,
    }
}

/// Two arguments of one name, after renaming.
fn property_names(parameters: &[(Parameter, Option<LitStr>)], problems: &mut Problems) {
    let mut taken = BTreeSet::new();
    let arguments = parameters
        .iter()
        .filter_map(|(parameter, rename)| match &parameter.source {
            // Two of one name under exclusive conditions are no clash.
            Source::Argument(argument) if parameter.conditions.is_empty() => {
                Some((argument, rename))
            }
            _ => None,
        });
    for (argument, rename) in arguments.clone() {
        if rename.is_none() {
            taken.insert(argument.field.unraw().to_string());
        }
    }
    for (_, rename) in arguments {
        if let Some(literal) = rename
            && !taken.insert(literal.value())
        {
            problems.add(
                literal,
                &format!("another argument is called `{}` already", literal.value()),
                "choose another name",
            );
        }
    }
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
