// Many dots of one look, or arrow heads that are turned to where each object goes: a vertex each. A ScatterplotLayer makes an instance of each, and a machine without a graphics
// card draws instances one by one: 100,000 of them took it 5 s.
import { Layer, project32, type DefaultProps, type LayerProps } from '@deck.gl/core';
import { Model } from '@luma.gl/engine';
import { NO_DIRECTION } from '../data/live';

type Colour = [number, number, number]; // each from 0 to 255

interface DotsProps {
    data: unknown;
    getPosition?: unknown;
    getDirection?: unknown; // degrees from north to the east; below 0: a dot
    radius_px: number;
    fill: Colour;
    edge: Colour;
    edge_px: number; // inside of the radius; 0: none
    arrow_px?: number; // from the middle of an arrow head to its tip
}

const UNIFORMS = `\
layout(std140) uniform dotsUniforms {
    vec3 fill;
    vec3 edge;
    float radius;
    float border;
    float arrow;
} dots;
`;

const dotsModule = {
    name: 'dots',
    vs: UNIFORMS,
    fs: UNIFORMS,
    uniformTypes: { fill: 'vec3<f32>', edge: 'vec3<f32>', radius: 'f32', border: 'f32', arrow: 'f32' },
} as const;

const VERTEX = `\
#version 300 es
#define SHADER_NAME dots-vertex
in vec3 positions;
in vec3 positions64Low;
in float directions;
out float direction;
out float reach; // half the side of the square that is drawn, in pixels of the page
void main(void) {
    geometry.worldPosition = positions;
    gl_Position = project_position_to_clipspace(positions, positions64Low, vec3(0.0), geometry.position);
    direction = directions;
    reach = (directions < 0.0 ? dots.radius : 1.12 * dots.arrow) + 1.0; // its corners lie farther out than its tip
    gl_PointSize = 2.0 * reach * project.devicePixelRatio;
}
`;

// An arrow head lies to both sides of its axis alike: two lines bound a half of it, from the tip to the corner and
// from the corner to the notch. Lengths are shares of that from the middle to the tip.
const FRAGMENT = `\
#version 300 es
#define SHADER_NAME dots-fragment
precision highp float;
in float direction;
in float reach;
out vec4 fragColor;
const vec2 TIP = vec2(0.0, 1.0);
const vec2 CORNER = vec2(0.72, -0.85);
const vec2 NOTCH = vec2(0.0, -0.42);
float within(vec2 at, vec2 from, vec2 to) {
    vec2 along = normalize(to - from);
    return dot(at - from, vec2(along.y, -along.x));
}
void main(void) {
    vec2 at = (gl_PointCoord * 2.0 - 1.0) * reach; // y goes down
    float depth = dots.radius - length(at); // how far from the edge, above 0 inside
    if (direction >= 0.0) {
        float turned = radians(direction);
        vec2 ahead = vec2(sin(turned), -cos(turned));
        vec2 own = vec2(abs(dot(at, vec2(-ahead.y, ahead.x))), dot(at, ahead));
        depth = min(
            within(own, TIP * dots.arrow, CORNER * dots.arrow),
            within(own, CORNER * dots.arrow, NOTCH * dots.arrow)
        );
    }
    float inside = clamp(depth + 0.5, 0.0, 1.0);
    if (inside == 0.0) discard;
    float isEdge = dots.border > 0.0 ? clamp(dots.border - depth + 0.5, 0.0, 1.0) : 0.0;
    fragColor = vec4(mix(dots.fill, dots.edge, isEdge), inside);
}
`;

const share = (colour: Colour): number[] => colour.map((one) => one / 255);

export class DotsLayer extends Layer<LayerProps & DotsProps> {
    static override layerName = 'DotsLayer';
    static override defaultProps: DefaultProps = {
        getPosition: { type: 'accessor', value: [0, 0] },
        getDirection: { type: 'accessor', value: NO_DIRECTION },
    };
    declare state: { model: Model };

    override getShaders() {
        return super.getShaders({ vs: VERTEX, fs: FRAGMENT, modules: [project32, dotsModule] });
    }

    override initializeState(): void {
        const manager = this.getAttributeManager()!;
        manager.add({
            positions: { size: 3, type: 'float64', fp64: this.use64bitPositions(), accessor: 'getPosition' },
            directions: { size: 1, accessor: 'getDirection' },
        });
        const model = new Model(this.context.device, {
            ...this.getShaders(),
            id: this.props.id,
            bufferLayout: manager.getBufferLayouts({ isInstanced: false }),
            topology: 'point-list',
            isInstanced: false,
        });
        this.setState({ model });
    }

    override draw(): void {
        const { fill, edge, radius_px, edge_px, arrow_px } = this.props;
        const { model } = this.state;
        model.shaderInputs.setProps({
            dots: {
                fill: share(fill),
                edge: share(edge),
                radius: radius_px,
                border: edge_px,
                arrow: arrow_px ?? radius_px,
            },
        });
        model.setVertexCount(this.getNumInstances());
        model.draw(this.context.renderPass);
    }
}
