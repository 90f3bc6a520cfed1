import { Graph as LayoutGraph, layout } from '@dagrejs/dagre'
import type { Graph, Tensor } from '../api/model-detail.ts'

export interface PlacedNode {
  readonly id: string
  readonly kind: 'input' | 'step' | 'output'
  /** Index of the step; undefined for an input or output. */
  readonly step: number | undefined
  readonly label: string
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

export interface PlacedEdge {
  readonly id: string
  /** Ids of the nodes that the edge connects. */
  readonly from: string
  readonly to: string
  readonly tensor: string
  readonly points: readonly { readonly x: number; readonly y: number }[]
  /** Centre of the label; absent without a label, as in a graph of many steps. */
  readonly label?: { readonly x: number; readonly y: number }
}

export interface PlacedGraph {
  readonly width: number
  readonly height: number
  readonly nodes: readonly PlacedNode[]
  readonly edges: readonly PlacedEdge[]
}

export const STEP_SIZE = { width: 232, height: 74 }
const TENSOR_SIZE = { width: 200, height: 44 }
const LABEL_SIZE = { width: 150, height: 30 }
/** Labels take as much room as steps. */
const MAX_LABELLED_STEPS = 60

interface Signature {
  readonly inputs: readonly Tensor[]
  readonly outputs: readonly Tensor[]
}

/** Places the steps of an ensemble from top to bottom, its inputs first and its outputs last. */
export function placeGraph(graph: Graph, { inputs, outputs }: Signature): PlacedGraph {
  const drawn = new LayoutGraph({ multigraph: true })
  drawn.setGraph({ rankdir: 'TB', nodesep: 24, ranksep: 34, edgesep: 12, marginx: 8, marginy: 8 })
  const nodes: Pick<PlacedNode, 'id' | 'kind' | 'label' | 'step'>[] = []
  const add = (node: (typeof nodes)[number]): void => {
    nodes.push(node)
    drawn.setNode(node.id, { ...(node.kind === 'step' ? STEP_SIZE : TENSOR_SIZE) })
  }
  const makers = new Map<string, string>()
  const inputNames = new Set(inputs.map(({ name }) => name))
  for (const { name } of inputs)
    add({ id: `in ${name}`, kind: 'input', label: name, step: undefined })
  graph.steps.forEach((step, i) => {
    add({ id: `step ${i}`, kind: 'step', label: step.name, step: i })
    for (const { tensor } of step.outputs) makers.set(tensor, `step ${i}`)
  })
  for (const { name } of outputs)
    add({ id: `out ${name}`, kind: 'output', label: name, step: undefined })
  const hasLabels = graph.steps.length <= MAX_LABELLED_STEPS
  const edges: { readonly v: string; readonly w: string; readonly name: string }[] = []
  const connect = (v: string | undefined, w: string, name: string): void => {
    if (v === undefined || edges.some((e) => e.v === v && e.w === w && e.name === name)) return
    edges.push({ v, w, name })
    // An input or output says itself what it is.
    const isNamed = v.startsWith('in ') || w.startsWith('out ')
    drawn.setEdge(v, w, hasLabels && !isNamed ? { ...LABEL_SIZE, labelpos: 'c' } : {}, name)
  }
  graph.steps.forEach((step, i) => {
    for (const { tensor } of step.inputs) {
      // Steps read the request's tensor where a step writes onto the name of an input.
      connect(inputNames.has(tensor) ? `in ${tensor}` : makers.get(tensor), `step ${i}`, tensor)
    }
  })
  for (const { name } of outputs) connect(makers.get(name), `out ${name}`, name)
  layout(drawn)
  const { width = 0, height = 0 } = drawn.graph()
  return {
    width,
    height,
    nodes: nodes.map((node) => ({ ...node, ...boxOf(drawn.node(node.id)) })),
    edges: edges.map(({ v, w, name }) => {
      const { points = [], x, y } = drawn.edge(v, w, name)
      const label = hasLabels && x !== undefined && y !== undefined && { label: { x, y } }
      return { id: `${v} ${w} ${name}`, from: v, to: w, tensor: name, points, ...label }
    }),
  }
}

function boxOf({
  x = 0,
  y = 0,
  width,
  height,
}: {
  x?: number
  y?: number
  width: number
  height: number
}) {
  return { x: x - width / 2, y: y - height / 2, width, height }
}

/** Makes the SVG path of a smooth line along points. */
export function toPath(points: PlacedEdge['points']): string {
  const [first, ...rest] = points
  if (first === undefined) return ''
  const parts = [`M${at(first)}`]
  rest.forEach((point, i) => {
    const next = rest[i + 1]
    if (next === undefined) parts.push(`L${at(point)}`)
    else parts.push(`Q${at(point)} ${at({ x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 })}`)
  })
  return parts.join('')
}

function at({ x, y }: { readonly x: number; readonly y: number }): string {
  return `${x.toFixed(1)},${y.toFixed(1)}`
}
