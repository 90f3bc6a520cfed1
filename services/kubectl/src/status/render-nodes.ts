import { printable } from '@tutti/chassis'
import type { StatusNode } from './tree.ts'

/** Characters of a cause; JSON has all of it. */
const LONGEST_CAUSE = 400
/** Labels that are longer do not move the columns. */
const WIDEST = 60

interface Line {
  readonly label: string
  readonly node: StatusNode
  /** Whether a node below says the same in more words. */
  readonly isTold: boolean
}

/** Renders nodes as a tree, with a line for each: kind and name, state, number of pods, and why it is not ready. */
export function renderNodes(nodes: readonly StatusNode[]): string {
  const lines = nodes.flatMap((node) => toLines(node, { first: '', rest: '' }))
  const width = Math.min(WIDEST, Math.max(0, ...lines.map(({ label }) => label.length)))
  return lines.map((line) => `${renderLine(line, width)}\n`).join('')
}

function toLines(
  node: StatusNode,
  indent: { readonly first: string; readonly rest: string },
): readonly Line[] {
  const { kind, name, step, children, cause } = node
  const label = `${indent.first}${step === undefined ? '' : `${step}: `}${kind} ${name}`
  const told = (child: StatusNode): boolean =>
    child.cause !== undefined && cause?.message.endsWith(child.cause.message) === true
  const last = children.length - 1
  return [
    { label: printable(label), node, isTold: indent.first !== '' && children.some(told) },
    ...children.flatMap((child, index) =>
      toLines(child, {
        first: `${indent.rest}${index === last ? '└─ ' : '├─ '}`,
        rest: `${indent.rest}${index === last ? '   ' : '│  '}`,
      }),
    ),
  ]
}

function renderLine({ label, node, isTold }: Line, width: number): string {
  const { state, detail = '', cause } = node
  const columns = [label.padEnd(width), state.padEnd(8), detail.padEnd(9)]
  if (cause === undefined) return columns.join('  ').trimEnd()
  const { reason, message } = cause
  return [...columns, isTold ? reason : `${reason}: ${oneLine(message)}`].join('  ').trimEnd()
}

/** Shortens a text of the cluster to one line of a terminal, of about 400 characters at most. */
export function oneLine(message: string): string {
  const text = printable(message.trim().replaceAll(/\s*\n\s*/g, ' | '))
  return text.length <= LONGEST_CAUSE ? text : `${text.slice(0, LONGEST_CAUSE)}...`
}
