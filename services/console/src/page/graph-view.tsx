import { useMemo } from 'preact/hooks'
import type { Graph, ModelDetail, StepDetail, Tensor } from '../api/model-detail.ts'
import { type PlacedEdge, type PlacedNode, placeGraph, toPath } from './graph-layout.ts'
import { hasPage, linkTo } from './links.ts'
import { shapeOf } from './parts.tsx'
import { formatMs, formatRate, type Rates } from './rates.ts'

interface GraphViewProps {
  readonly graph: Graph
  readonly signature: Pick<ModelDetail, 'inputs' | 'outputs'>
  /** By step. */
  readonly rates: readonly (Rates | undefined)[]
}

/** Draws the graph of an ensemble, from its inputs above to its outputs below. Each step is a link to its model. */
export function GraphView({ graph, signature, rates }: GraphViewProps) {
  // Counts come anew each second; the shape is laid out only when it changes.
  const shape = JSON.stringify([graph.steps.map(shapeOfStep), signature.inputs, signature.outputs])
  const placed = useMemo(() => placeGraph(graph, signature), [shape])
  const types = new Map(graph.tensors.map((tensor) => [tensor.name, tensor]))
  const width = Math.ceil(placed.width)
  const height = Math.ceil(placed.height)
  const busiestMs = Math.max(0, ...rates.map((one) => busyOf(one)))
  return (
    <div class="scroll graph" tabIndex={0} role="region" aria-label="Graph of the ensemble">
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
        <defs>
          <marker
            id="arrow"
            viewBox="0 0 8 8"
            refX="7"
            refY="4"
            markerWidth="7"
            markerHeight="7"
            orient="auto"
          >
            <path d="M0 0 8 4 0 8Z" />
          </marker>
        </defs>
        {placed.edges.map((edge) => (
          <EdgeView key={edge.id} edge={edge} type={types.get(edge.tensor)} />
        ))}
        {placed.nodes.map((node) => {
          const step = node.step === undefined ? undefined : graph.steps[node.step]
          const now = node.step === undefined ? undefined : rates[node.step]
          if (step === undefined)
            return <TensorView key={node.id} node={node} type={types.get(node.label)} />
          const share = busiestMs > 0 ? busyOf(now) / busiestMs : 0
          return <StepView key={node.id} node={node} step={step} now={now} share={share} />
        })}
      </svg>
    </div>
  )
}

function shapeOfStep({ name, model, inputs, outputs }: StepDetail) {
  return [name, model, inputs, outputs]
}

/** Compute milliseconds of a second. */
function busyOf(now: Rates | undefined): number {
  if (now === undefined || !Number.isFinite(now.computeMs)) return 0
  return now.computeMs * now.requestsPerSecond
}

function EdgeView({
  edge,
  type,
}: {
  readonly edge: PlacedEdge
  readonly type: Tensor | undefined
}) {
  const written = type === undefined ? '' : shapeOf(type)
  const backWidth = Math.min(24, Math.max(edge.tensor.length, written.length)) * 7.4
  return (
    <g class="edge">
      <title>{`${edge.tensor}: ${written}`}</title>
      <path d={toPath(edge.points)} marker-end="url(#arrow)" />
      {edge.label && (
        <g transform={`translate(${edge.label.x} ${edge.label.y})`}>
          <rect x={-backWidth / 2} y="-16" width={backWidth} height="32" />
          <text y="-3">{shorten(edge.tensor, 24)}</text>
          <text y="11" class="type">
            {shorten(written, 26)}
          </text>
        </g>
      )}
    </g>
  )
}

function TensorView({
  node,
  type,
}: {
  readonly node: PlacedNode
  readonly type: Tensor | undefined
}) {
  const { x, y, width, height, kind, label } = node
  return (
    <g class={`tensor ${kind}`} transform={`translate(${x} ${y})`}>
      <title>{`${kind} ${label}`}</title>
      <rect width={width} height={height} rx={height / 2} />
      <text x={width / 2} y="18">
        {shorten(label, 26)}
      </text>
      <text x={width / 2} y="34" class="type">
        {type === undefined ? '' : shorten(shapeOf(type), 30)}
      </text>
    </g>
  )
}

function StepView(o: {
  readonly node: PlacedNode
  readonly step: StepDetail
  readonly now: Rates | undefined
  /** Its compute time as a part of that of the busiest step, 0 to 1. */
  readonly share: number
}) {
  const { node, step, now, share } = o
  const { x, y, width, height } = node
  const failing = (now?.failuresPerSecond ?? 0) > 0
  const figures = figuresOf(now)
  const box = (
    <g
      class={`step ${step.state === 'not ready' ? 'down' : ''}`}
      transform={`translate(${x} ${y})`}
    >
      <title>{`step ${step.name}, model ${step.model}, ${step.state}`}</title>
      <rect width={width} height={height} rx="8" />
      <rect class="busy" x="8" y={height - 7} width={(width - 16) * share} height="3" rx="1.5" />
      <text x="12" y="21" class="name">
        {shorten(step.name, failing ? 14 : 28)}
      </text>
      <text x="12" y="38" class="type">
        {step.state === 'not ready'
          ? 'not ready'
          : shorten(step.model === step.name ? '' : step.model, 30)}
      </text>
      <text x="12" y="57" class="now" {...fit(figures, width - 24)}>
        {figures}
      </text>
      {failing && (
        <text x={width - 12} y="21" class="failing">
          {formatRate(now?.failuresPerSecond)} errors
        </text>
      )}
    </g>
  )
  return hasPage(step) ? <a href={linkTo(step.model)}>{box}</a> : box
}

function figuresOf(now: Rates | undefined): string {
  const rate = formatRate(now?.requestsPerSecond)
  return `${rate} · queue ${formatMs(now?.queueMs)} · run ${formatMs(now?.computeMs)}`
}

/** Characters that a step has room for. */
const MOST_FIGURES = 35

/** Squeezes a text that is wider than its box. */
function fit(text: string, width: number) {
  return text.length > MOST_FIGURES
    ? { textLength: width, lengthAdjust: 'spacingAndGlyphs' as const }
    : {}
}

function shorten(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`
}
