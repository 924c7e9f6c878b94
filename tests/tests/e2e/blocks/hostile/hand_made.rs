//! Handwritten blocks that no compiler would make. They are core modules with the canonical names, and `block pack` makes components of
//! them.

use blockbase_tests::{checkout, pack};
use serde_json::{Value, json};
use wit_component::StringEncoding;
use wit_parser::Resolve;

/// A core module with an action `go`, which returns null, and a hook `go`, which returns nothing. Its parts can be replaced.
pub(crate) struct HandMade {
    pub imports: &'static str,
    /// Further memories, tables, functions and data.
    pub fields: String,
    pub realloc: &'static str,
    pub handlers: &'static str,
    /// The action. Its `$arguments` have the layout of the canonical ABI.
    pub call: &'static str,
    /// The hook.
    pub receive: &'static str,
}

impl Default for HandMade {
    fn default() -> Self {
        HandMade {
            imports: "",
            fields: String::new(),
            // Memory is never freed, because an instance serves only one call or a few.
            realloc: "(local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
                      (global.set $next (i32.add (local.get $at) (local.get $bytes)))
                      (local.get $at)",
            handlers: "(i32.const 16)",
            call: "(i32.const 256)",
            receive: "(i32.const 320)",
        }
    }
}

impl HandMade {
    /// The module, made from its parts.
    pub(crate) fn module(&self) -> Vec<u8> {
        let HandMade { imports, fields, realloc, handlers, call, receive } = self;
        let text = format!(
            r#"(module
              {imports}
              (memory (export "memory") 32)
              {fields}
              (global $next (mut i32) (i32.const 4096))
              (func (export "cabi_realloc") (param $old i32) (param i32 i32) (param $bytes i32) (result i32)
                (local $at i32) {realloc})
              (func (export "blockbase:block/registry@0.1.0#handlers") (result i32) {handlers})
              (func (export "blockbase:block/actions@0.1.0#call") (param $arguments i32) (result i32) {call})
              (func (export "blockbase:block/hooks@0.1.0#receive") (param $arguments i32) (result i32) {receive})
              (func (export "blockbase:block/subscriptions@0.1.0#deliver") (param $arguments i32) (result i32) (i32.const 320))
              ;; The list of handlers: two of them, at 64, each with the places and lengths of its name and its kind.
              (data (i32.const 16) "\40\00\00\00\02\00\00\00")
              (data (i32.const 64) "\80\00\00\00\02\00\00\00\90\00\00\00\06\00\00\00\80\00\00\00\02\00\00\00\a0\00\00\00\04\00\00\00")
              (data (i32.const 128) "go")
              (data (i32.const 144) "action")
              (data (i32.const 160) "hook")
              ;; What the action answers: success, with the text at 192. At 320 zeros are a hook's answer of nothing.
              (data (i32.const 192) "null")
              (data (i32.const 256) "\00\00\00\00\c0\00\00\00\04\00\00\00"))"#
        );
        wat::parse_str(text).unwrap()
    }

    /// The packed file.
    pub(crate) async fn packed(&self, name: &str) -> Vec<u8> {
        self.packed_with(name, json!({})).await
    }

    /// The packed file, with further keys of the manifest.
    pub(crate) async fn packed_with(&self, name: &str, changes: Value) -> Vec<u8> {
        packed(self.module(), name, changes).await
    }

    /// The packed file of a component that defines names of the interface with other types.
    pub(crate) async fn packed_with_wit(&self, name: &str, change: impl FnOnce(&str) -> String) -> Vec<u8> {
        let wit = std::fs::read_to_string(checkout().join("wit/blockbase-block-0.1.0/block.wit")).unwrap();
        let changed = change(&wit);
        assert_ne!(changed, wit);
        let mut resolve = Resolve::default();
        let package = resolve.push_str("block.wit", &changed).unwrap();
        let world = resolve.select_world(&[package], Some("block")).unwrap();
        let mut module = self.module();
        wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
        packed(module, name, json!({})).await
    }
}

/// The packed file of a module or component with the action `go` and the hook `go`.
pub(crate) async fn packed(wasm: Vec<u8>, name: &str, changes: Value) -> Vec<u8> {
    let mut manifest = json!({
        "name": name, "version": "0.1.0", "description": "Made by hand.",
        "actions": [{ "name": "go" }], "hooks": [{ "name": "go" }],
    });
    for (key, value) in changes.as_object().unwrap() {
        manifest[key] = value.clone();
    }
    pack(wasm, manifest).await.unwrap()
}
