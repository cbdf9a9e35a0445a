// Many dots of one look: a vertex each. A ScatterplotLayer makes an instance of each, and a machine without a graphics
// card draws instances one by one: 100,000 of them took it 5 s.
import { Layer, project32, type DefaultProps, type LayerProps } from '@deck.gl/core';
import { Model } from '@luma.gl/engine';

type Colour = [number, number, number]; // each from 0 to 255

interface DotsProps {
    data: unknown;
    getPosition?: unknown;
    radius_px: number;
    fill: Colour;
    edge: Colour;
    edge_px: number; // inside of the radius; 0: none
}

const UNIFORMS = `\
layout(std140) uniform dotsUniforms {
    vec3 fill;
    vec3 edge;
    float radius;
    float border;
} dots;
`;

const dotsModule = {
    name: 'dots',
    vs: UNIFORMS,
    fs: UNIFORMS,
    uniformTypes: { fill: 'vec3<f32>', edge: 'vec3<f32>', radius: 'f32', border: 'f32' },
} as const;

const VERTEX = `\
#version 300 es
#define SHADER_NAME dots-vertex
in vec3 positions;
in vec3 positions64Low;
void main(void) {
    geometry.worldPosition = positions;
    gl_Position = project_position_to_clipspace(positions, positions64Low, vec3(0.0), geometry.position);
    gl_PointSize = 2.0 * (dots.radius + 1.0) * project.devicePixelRatio;
}
`;

const FRAGMENT = `\
#version 300 es
#define SHADER_NAME dots-fragment
precision highp float;
out vec4 fragColor;
void main(void) {
    float distance = length(gl_PointCoord * 2.0 - 1.0) * (dots.radius + 1.0);
    float inside = clamp(dots.radius + 0.5 - distance, 0.0, 1.0);
    if (inside == 0.0) discard;
    float inner = dots.radius - dots.border;
    float isEdge = dots.border > 0.0 ? clamp(distance - inner + 0.5, 0.0, 1.0) : 0.0;
    fragColor = vec4(mix(dots.fill, dots.edge, isEdge), inside);
}
`;

const share = (colour: Colour): number[] => colour.map((one) => one / 255);

export class DotsLayer extends Layer<LayerProps & DotsProps> {
    static override layerName = 'DotsLayer';
    static override defaultProps: DefaultProps = { getPosition: { type: 'accessor', value: [0, 0] } };
    declare state: { model: Model };

    override getShaders() {
        return super.getShaders({ vs: VERTEX, fs: FRAGMENT, modules: [project32, dotsModule] });
    }

    override initializeState(): void {
        const manager = this.getAttributeManager()!;
        manager.add({
            positions: { size: 3, type: 'float64', fp64: this.use64bitPositions(), accessor: 'getPosition' },
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
        const { fill, edge, radius_px, edge_px } = this.props;
        const { model } = this.state;
        model.shaderInputs.setProps({
            dots: { fill: share(fill), edge: share(edge), radius: radius_px, border: edge_px },
        });
        model.setVertexCount(this.getNumInstances());
        model.draw(this.context.renderPass);
    }
}
