//! Schemas and values drawn from a string of bytes, so that proptest can shrink them.

#![allow(dead_code, reason = "not every test uses all of it")]

pub(crate) mod properties;

use serde_json::{Map, Value, json};

/// A source of choices: the bytes in order, then a fixed sequence made from them.
pub(crate) struct Draw {
    bytes: Vec<u8>,
    at: usize,
    state: u64,
}

impl Draw {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let state = bytes
            .iter()
            .fold(0x9e37_79b9_7f4a_7c15, |state: u64, byte| {
                (state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            });
        Self {
            bytes,
            at: 0,
            state,
        }
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let byte = self.bytes.get(self.at).copied();
        self.at += 1;
        let value = byte.map_or_else(
            || {
                self.state = self
                    .state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                usize::try_from(self.state >> 40).unwrap()
            },
            usize::from,
        );
        value % limit
    }

    fn one_of<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    fn flip(&mut self) -> bool {
        self.below(2) == 0
    }

    /// A schema of a tool's arguments.
    pub(crate) fn input_schema(&mut self) -> Value {
        let mut schema = self.object_schema(3);
        schema["$defs"] = json!({
            "Unit": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
            "Tree": {
                "type": "object",
                "properties": {"v": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
                "required": ["v"]
            }
        });
        schema
    }

    fn key(&mut self) -> String {
        self.one_of(&[
            "a",
            "b",
            "count",
            "if",
            "a_count",
            "in",
            "with space",
            "dash-ed",
            "dot.ted",
            "ü",
            "kind",
            "\"q\"",
            "back\\slash",
            "",
            "type",
            "principal",
            "*",
            "new\nline",
            "__cedar",
        ])
        .to_owned()
    }

    fn object_schema(&mut self, depth: usize) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for _ in 0..self.below(5) {
            let key = self.key();
            if self.flip() {
                required.push(key.clone());
            }
            properties.insert(key, self.schema(depth));
        }
        let mut schema = json!({"type": "object", "properties": properties, "required": required});
        if !properties.contains_key("*") && self.below(4) == 0 {
            schema["additionalProperties"] = self.schema(depth.saturating_sub(1));
        } else if self.flip() {
            schema["additionalProperties"] = json!(false);
        }
        schema
    }

    fn schema(&mut self, depth: usize) -> Value {
        let kinds = if depth == 0 { 14 } else { 26 };
        match self.below(kinds) {
            0 => json!({"type": "boolean"}),
            1 => json!({"type": "integer"}),
            2 => json!({"type": "number"}),
            3 | 4 => json!({"type": "string"}),
            5 => json!({"type": "string", "format": self.one_of(&["date-time", "date"])}),
            6 => json!({"type": "string", "format": "decimal"}),
            7 => json!({"type": "string", "format": self.one_of(&["ipv4", "ipv6", "ip"])}),
            8 => json!({"enum": ["a", "b", "\"c\"", "d e"]}),
            9 => json!({"enum": ["x", null, 1, 2.5, true]}),
            10 => json!({"type": ["string", "null"]}),
            11 => json!({"oneOf": [{"const": "p", "description": "P"}, {"const": "q"}]}),
            12 => json!({"type": ["string", "number", "boolean"]}),
            13 => json!(true),
            14 => json!({"type": "array", "items": self.schema(depth - 1)}),
            15 => json!({"type": "array"}),
            16 => self.object_schema(depth - 1),
            17 => json!({"type": "object", "additionalProperties": self.schema(depth - 1)}),
            18 => {
                json!({"type": "array", "prefixItems": [self.schema(depth - 1), self.schema(depth - 1)], "minItems": self.below(3), "items": false})
            }
            19 => json!({"anyOf": [self.schema(depth - 1), {"type": "null"}]}),
            20 => json!({"anyOf": [self.schema(depth - 1), self.schema(depth - 1)]}),
            21 => self.tagged_inside(depth - 1),
            22 => json!({"oneOf": [
                {"type": "string", "enum": ["Unit", "kind"]},
                {"type": "object", "properties": {"New": self.schema(depth - 1)}, "required": ["New"], "additionalProperties": false}
            ]}),
            23 => json!({"$ref": self.one_of(&["#/$defs/Unit", "#/$defs/Tree"])}),
            24 => json!({"allOf": [{"$ref": "#/$defs/Unit"}], "description": "wrapped"}),
            _ => json!({
                "type": "object", "properties": {"base": {"type": "string"}}, "required": ["base"],
                "oneOf": [
                    {"type": "object", "properties": {"t": {"const": "x"}, "vx": self.schema(depth - 1)}, "required": ["t", "vx"]},
                    {"type": "object", "properties": {"t": {"const": "y"}}, "required": ["t"]}
                ]
            }),
        }
    }

    fn tagged_inside(&mut self, depth: usize) -> Value {
        let mut variants = Vec::new();
        for name in ["one", "kind", "th ree"] {
            let mut variant = self.object_schema(depth);
            variant["properties"]["tag"] = json!({"type": "string", "const": name});
            let mut required = variant["required"].as_array().unwrap().clone();
            required.push(json!("tag"));
            variant["required"] = json!(required);
            variants.push(variant);
        }
        json!({"oneOf": variants})
    }

    /// A value that fits a schema (`root` holds its definitions).
    pub(crate) fn value(&mut self, schema: &Value, root: &Value, depth: usize) -> Value {
        let Some(object) = schema.as_object() else {
            return self.any(2);
        };
        if let Some(Value::String(reference)) = object.get("$ref") {
            let target = root.pointer(reference.trim_start_matches('#')).unwrap();
            return self.value(target, root, depth);
        }
        if let Some(Value::Array(parts)) = object.get("allOf") {
            return self.value(&parts[0], root, depth);
        }
        if let Some(only) = object.get("const") {
            return only.clone();
        }
        if let Some(Value::Array(values)) = object.get("enum") {
            return self.one_of(values);
        }
        if let Some(Value::Array(branches)) = object.get("oneOf").or_else(|| object.get("anyOf")) {
            let branch = self.one_of(branches);
            let mut value = self.value(&branch, root, depth);
            if object.contains_key("properties")
                && let Some(fields) = value.as_object_mut()
            {
                let mut base = object.clone();
                base.remove("oneOf");
                base.remove("anyOf");
                let own = self.value(&Value::Object(base), root, depth);
                fields.extend(own.as_object().unwrap().clone());
            }
            return value;
        }
        let kind = match object.get("type") {
            Some(Value::Array(kinds)) => self.one_of(kinds),
            Some(kind) => kind.clone(),
            None => return self.any(2),
        };
        let format = object.get("format").and_then(Value::as_str);
        match (kind.as_str().unwrap(), format) {
            ("null", _) => Value::Null,
            ("boolean", _) => json!(self.flip()),
            ("integer", _) => self.one_of(&[
                json!(0),
                json!(-7),
                json!(i64::MAX),
                json!(i64::MIN),
                json!(3.0),
            ]),
            ("number", _) => self.one_of(&[
                json!(0),
                json!(-0.0),
                json!(1.5),
                json!(-2.123_456),
                json!(1e15),
                json!(i64::MIN),
                json!(0.1),
                json!(-922_337_203_685_477.5),
                json!(1e-9),
                json!(12.0001),
            ]),
            ("string", Some("date-time" | "date")) => self.one_of(&[
                json!("2026-01-31T12:00:00Z"),
                json!("2026-01-31T12:00:00.123456+05:30"),
                json!("2024-02-29"),
                json!("9999-12-31"),
                json!("0001-01-01T00:00:00-00:00"),
            ]),
            ("string", Some("decimal")) => self.one_of(&[
                json!("1"),
                json!("-0.5000"),
                json!("922337203685477.5807"),
                json!("00012.30000"),
            ]),
            ("string", Some("ipv4" | "ipv6" | "ip")) => self.one_of(&[
                json!("10.0.0.1"),
                json!("::1"),
                json!("::ffff:10.0.0.1"),
                json!("2001:db8::7"),
            ]),
            ("string", _) => self.one_of(&[
                json!(""),
                json!("text"),
                json!("User::\"x\""),
                json!("\u{0}\u{7f}\u{feff}"),
                json!("🦀 ü"),
            ]),
            ("array", _) => self.array(object, root, depth),
            _ => self.object(object, root, depth),
        }
    }

    fn array(&mut self, schema: &Map<String, Value>, root: &Value, depth: usize) -> Value {
        if let Some(Value::Array(items)) = schema.get("prefixItems") {
            let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
            let length = usize::try_from(least).unwrap();
            return items
                .iter()
                .take(length + self.below(3))
                .map(|item| self.value(item, root, depth + 1))
                .collect();
        }
        let any = json!(true);
        let items = schema.get("items").unwrap_or(&any);
        let length = if depth > 6 { 0 } else { self.below(4) };
        (0..length)
            .map(|_| self.value(items, root, depth + 1))
            .collect()
    }

    fn object(&mut self, schema: &Map<String, Value>, root: &Value, depth: usize) -> Value {
        let mut value = Map::new();
        let required = schema.get("required").cloned().unwrap_or_default();
        let required = required.as_array().cloned().unwrap_or_default();
        if let Some(Value::Object(properties)) = schema.get("properties") {
            for (key, property) in properties {
                if required.contains(&json!(key)) || depth < 7 && self.flip() {
                    value.insert(key.clone(), self.value(property, root, depth + 1));
                }
            }
        }
        let declared = schema.contains_key("properties");
        match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => {}
            None if declared => {}
            free => {
                let any = json!(true);
                for _ in 0..self.below(3) {
                    let key = format!("free {}", self.one_of(&["x", "__entity", "ß", "\""]));
                    let free = self.value(free.unwrap_or(&any), root, depth + 1);
                    value.insert(key, free);
                }
            }
        }
        Value::Object(value)
    }

    /// Any JSON.
    pub(crate) fn any(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 8 } else { 10 }) {
            0 => Value::Null,
            1 => json!(self.flip()),
            2 => json!(u64::MAX),
            3 => json!(-1.25e300),
            4 => json!("x".repeat(self.below(3) * 40_000)),
            5 => json!({"__entity": {"type": "User", "id": "x"}}),
            6 => json!({"__extn": {"fn": "decimal", "arg": "1.0"}}),
            7 => json!("2026-13-45T99:99:99Z"),
            8 => (0..self.below(3)).map(|_| self.any(depth - 1)).collect(),
            _ => {
                let mut object = Map::new();
                for _ in 0..self.below(3) {
                    let value = self.any(depth - 1);
                    object.insert(self.key(), value);
                }
                Value::Object(object)
            }
        }
    }
}
