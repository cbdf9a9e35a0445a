// What the page uses of topojson-client, which has no types of its own.
declare module 'topojson-client' {
    export type TopologyObject = object;
    export interface Topology {
        objects: Record<string, TopologyObject | undefined>;
    }
    /** Of a collection, as the objects of world-atlas are. */
    export function feature(topology: Topology, object: TopologyObject): GeoJSON.FeatureCollection;
    export function mesh(
        topology: Topology,
        object: TopologyObject,
        filter: (a: TopologyObject, b: TopologyObject) => boolean,
    ): GeoJSON.MultiLineString;
}
