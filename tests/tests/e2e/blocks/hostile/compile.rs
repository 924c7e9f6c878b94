//! Components that would take an unlimited amount of time and memory to compile. The server refuses them, and serves other
//! requests meanwhile.
//!
//! These tests run only on SQLite, because nothing is stored.

use std::time::Duration;

use blockbase_tests::Engine;
use serde_json::json;
use wasm_encoder::{BlockType, CodeSection, Component, Function, FunctionSection, Module, ModuleSection, TypeSection, ValType};

use super::hand_made::packed;
use super::{good, impatient, install, staying_ready};

/// A component with one core module that has the same function `count` times.
fn component(function: &Function, count: u32) -> Vec<u8> {
    let (mut types, mut functions, mut code) = (TypeSection::new(), FunctionSection::new(), CodeSection::new());
    types.ty().function([ValType::I32], []);
    for _ in 0..count {
        functions.function(0);
        code.function(function);
    }
    let mut module = Module::new();
    module.section(&types).section(&functions).section(&code);
    let mut component = Component::new();
    component.section(&ModuleSection(&module));
    component.finish()
}

/// Hundreds of thousands of functions. Each takes the compiler a little time and memory.
fn many_functions() -> Vec<u8> {
    let mut function = Function::new([]);
    function.instructions().end();
    component(&function, 500_000)
}

/// One function with seven million branches. The compiler makes a block for each.
fn giant_function() -> Vec<u8> {
    let targets: Vec<u32> = (0..65_000).map(|number| number % 2).collect();
    let mut function = Function::new([]);
    let mut code = function.instructions();
    for _ in 0..110 {
        code.block(BlockType::Empty).block(BlockType::Empty).local_get(0).br_table(targets.iter().copied(), 0).end().end();
    }
    code.end();
    component(&function, 1)
}

/// How long the compiler may take on a busy machine until it exceeds its limits.
const PATIENCE: Duration = Duration::from_secs(300);
/// The pause between calls that show that the server is working. The calls should not take processor time from the compiler.
const BETWEEN_CALLS: Duration = Duration::from_millis(250);

#[ignore = "long: a minute of the processor"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_that_takes_too_much_to_compile_is_refused() {
    let server = impatient(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    install(&admin, "", json!({})).await;
    let files = [packed(giant_function(), "giant", json!({})).await, packed(many_functions(), "many", json!({})).await];
    let uploads = async {
        let mut refused = Vec::new();
        for file in files {
            let request = admin.request("POST", "/api/v1/blocks").header("content-type", "application/wasm");
            refused.push(server.send(request.timeout(PATIENCE).body(file)).await);
        }
        refused
    };
    let calls = async {
        loop {
            good(&admin).await;
            tokio::time::sleep(BETWEEN_CALLS).await;
        }
    };
    let refused = staying_ready(&server, async {
        tokio::select! {
            refused = uploads => refused,
            () = calls => unreachable!("it goes on until the uploads are refused"),
        }
    });
    for refused in refused.await {
        let error = refused.expect_error(400, "invalid_block");
        let message = error["message"].as_str().unwrap();
        // On a busy machine, the limit by the clock may come first.
        let reasons = ["needs more memory or time to compile", "takes longer than 240 s to compile"];
        assert!(reasons.iter().any(|reason| message.contains(reason)), "{message}");
    }
    assert_eq!(admin.get("/api/v1/blocks").await.data().as_array().unwrap().len(), 1);
    good(&admin).await;
}
