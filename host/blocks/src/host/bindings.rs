//! The host's side of the interface: the functions that it offers to a block, and the exports that it calls.

wasmtime::component::bindgen!({
    inline: "
        package blockbase:host;

        world host {
            import blockbase:block/data@0.1.0;
            import blockbase:block/secrets@0.1.0;
            import blockbase:block/config@0.1.0;
            import blockbase:block/log@0.1.0;
            import blockbase:block/deadline@0.1.0;
            import blockbase:block/http@0.1.0;

            export blockbase:block/registry@0.1.0;
            export blockbase:block/actions@0.1.0;
            export blockbase:block/hooks@0.1.0;
            export blockbase:block/subscriptions@0.1.0;
        }
    ",
    path: "../../wit/blockbase-block-0.1.0",
    world: "blockbase:host/host",
    imports: { default: async | trappable },
    exports: { default: async },
});
