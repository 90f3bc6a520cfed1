// Writes docs/builtins/step-kinds.md: which Python steps of public ensembles built-in steps express, from the table of services/backends whose
// chains a test runs.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { renderTable } from './table.mjs'

/**
 * @param {string} root - of the checkout.
 * @param {readonly object[]} kinds - the table.
 */
export function writeStepKinds(root, kinds) {
  const inOrder = kinds.toSorted((a, b) => a.rows[0] - b.rows[0])
  const [expressed, others] = [true, false].map((is) =>
    inOrder.filter((kind) => (typeof kind.expressed !== 'string') === is),
  )
  const readings = expressed.filter(({ isReading }) => isReading)
  const all = count(kinds)
  const share = Math.round((100 * count(expressed)) / all)
  const text = `# Built-in steps: instead of Python

After reading this page you know which Python steps of an ensemble you can write as [built-in steps](../builtins.md). \`npm run gen\` writes the page.

28 public repositories of ensembles have ${all} steps in Python (counted on 2026-11-29). Each was rebuilt from its inputs, its outputs and the words in its file.
Built-in steps express ${count(expressed)} of them (${share} %), ${count(readings)} of which (*) tell too little: there the chain is one thing that fits. A test runs each chain on random inputs and compares it with the
same step in Python, written for the test with NumPy, OpenCV, PIL and tokenizers; another one serves each as an Ensemble.

## Expressed

Built-ins are named once each, in the order in which they come. \`for each\` is a step with \`forEach\`.

${renderTable([['row', 'inputs', 'outputs', 'what it does', 'built-ins'], ...expressed.map((kind) => [...facts(kind), chainOf(kind.expressed)])])}

## Not expressed

${renderTable([['row', 'inputs', 'outputs', 'what it does', 'why'], ...others.map((kind) => [...facts(kind), kind.expressed])])}
`
  writeFileSync(join(root, 'docs', 'builtins', 'step-kinds.md'), text)
}

const count = (kinds) => kinds.reduce((sum, { rows }) => sum + rows.length, 0)

function facts({ rows, takes, makes, does, isReading }) {
  return [rows.join(', '), takes, makes, isReading ? `${does} (*)` : does]
}

function chainOf({ steps, networks = [] }) {
  const names = [...new Set(steps.flatMap(namesOf))].join(', ')
  return networks.length === 0 ? names : `the network, then ${names}`
}

function namesOf({ builtin, forEach }) {
  if (forEach === undefined) return [`\`${builtin.name}\``]
  const [first, ...rest] = new Set(forEach.steps.flatMap(namesOf))
  return [`for each (${[first, ...rest].join(', ')})`]
}
