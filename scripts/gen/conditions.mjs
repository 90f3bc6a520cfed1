// Writes docs/conditions.md: the conditions of the three kinds, and what each reason in the operator's source means.
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CONDITIONS, REASONS } from './condition-texts.mjs'
import { renderTable } from './table.mjs'

/** Sources of the operator, and those with the reasons of pods. */
const SOURCES = [
  'operator/src/controllers/**/*.ts',
  'services/kube/src/pods/*.ts',
]
/** Reasons that Kubernetes writes: the table of a test tries each. */
const TRIED = 'operator/src/testing/pod-causes.ts'
/** Reasons of events, and what is no source of the operator. */
const IS_OTHER = /(\.test|\/events)\.ts$/
/** A first argument of a call, a field or a default called reason, and the words for refused children. */
const REASON = /(?:\w\(\s*|reason(?::| =| \?\?) |(?:conflict|refused): )'([A-Z][A-Za-z]+)'[,)};\s]/g

/**
 * @param {string} root - of the checkout.
 * @param {{ types: Record<string, readonly string[]>, graph: readonly string[] }} code - the types of conditions by kind, and
 *   the reasons of the check of an Ensemble's graph.
 * @throws Error for a condition or a reason without a text, and for a text without a reason.
 */
export function writeConditions(root, { types, graph }) {
  const read = (path) => [path, readFileSync(join(root, path), 'utf8')]
  const paths = globSync(SOURCES, { cwd: root }).filter((path) => !IS_OTHER.test(path))
  const sources = paths.map(read)
  checkReasons(sources, graph)
  const tried = globSync(TRIED, { cwd: root }).map(read)
  checkTexts([...sources, ...tried], graph)
  checkTypes(types)
  writeFileSync(join(root, 'docs', 'conditions.md'), renderPage())
}

function checkReasons(sources, graph) {
  for (const [path, source] of sources) {
    const [, folder] = /controllers\/(model|ensemble|router)\//.exec(path) ?? []
    const isMeant = (kind) => folder === undefined || kind === 'Pod' || kind.toLowerCase() === folder
    for (const [, reason] of source.matchAll(REASON)) {
      checkReason(path, reason, Object.keys(REASONS).filter(isMeant))
    }
  }
  for (const reason of graph) checkReason('services/graph', reason, ['Ensemble'])
}

function checkReason(path, reason, kinds) {
  if (kinds.some((kind) => reason in REASONS[kind])) return
  throw new Error(`${path}: reason ${reason} has no text, want one in scripts/gen/condition-texts.mjs`)
}

function checkTexts(sources, graph) {
  for (const reason of Object.values(REASONS).flatMap((of) => Object.keys(of))) {
    if (graph.includes(reason) || sources.some(([, text]) => text.includes(`'${reason}'`))) continue
    throw new Error(`scripts/gen/condition-texts.mjs: no source of the operator has reason ${reason}`)
  }
}

function checkTypes(types) {
  for (const [kind, wanted] of Object.entries(types)) {
    const got = Object.keys(CONDITIONS[kind]).join(', ')
    if (got === wanted.join(', ')) continue
    throw new Error(`scripts/gen/condition-texts.mjs: ${kind}: got ${got}, want ${wanted.join(', ')}`)
  }
}

function renderPage() {
  const kinds = Object.keys(CONDITIONS).map(
    (kind) => `## ${kind}

${toTable(['condition', '`True` means'], CONDITIONS[kind])}

${toTable(['reason', 'meaning, and what to do'], REASONS[kind], true)}
`,
  )
  return `# Conditions and reasons

After reading this page you can tell from \`kubectl describe\` what a resource waits for, and what to do about it. \`npm run gen\`
writes the page from the operator's code. The message of a condition has the details: the field, the pod, or the words of the API
server.

${kinds.join('\n')}
## Pods

\`Ready\` has the deepest cause that the API server knows, with its words: the cause of a container, of a pod, of an event about the pod or
its claims, or the refusal of the pods themselves. While the cause lasts, Models also show it in \`status.lastFailure\` and in \`Degraded\`, and Routers in
\`Degraded\`. Ensembles repeat the cause of the first step that is not ready. Models and Ensembles repeat the reasons of their Router while no
router is ready. Reasons of Kubernetes that are not in the table appear as they are. The operator reads the events of a pod that has not been ready for 10 s.

${toTable(['reason', 'meaning, and what to do'], REASONS.Pod, true)}
`
}

function toTable(head, texts, isSorted = false) {
  const rows = Object.entries(texts).map(([name, text]) => [`\`${name}\``, text])
  const ordered = isSorted ? rows.toSorted(([a], [b]) => a.localeCompare(b, 'en')) : rows
  return renderTable([head, ...ordered])
}
