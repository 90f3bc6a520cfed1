import { findPages } from './pages.mjs'

/**
 * The sections of the site, each with its groups of pages. A name stands for `docs/NAME.md`, a pattern for all pages that it matches and
 * no other entry names. Every page of the checkout is in exactly one group; a test holds it so.
 */
const SECTIONS = {
  Start: { Start: ['README.md', 'quick-start', 'torchscript'] },
  Concepts: { Concepts: ['concepts', 'ARCHITECTURE.md'] },
  'How-tos': {
    'On one machine': [
      'serving-manifests',
      'model-control',
      'console',
      'measure',
      'engines',
      'sequences',
      'response-cache',
      'rate-limiter',
      'access',
      'processes',
      'storage',
      'model-addresses',
    ],
    'On Kubernetes': [
      'kubernetes',
      'clusters',
      'platforms',
      'manifests',
      'gitops',
      'models',
      'scale-to-zero',
      'gpus',
      'ensembles',
      'graphs',
      'step-calls',
      'exposure',
      'routers',
      'nats',
      'scaling',
      'same-pods',
      'upgrade',
      'kubectl',
    ],
  },
  Reference: {
    Resources: ['custom-resources', 'conditions'],
    'Built-in steps': ['builtins', /^docs\/builtins\//],
    Requests: ['protocol', 'errors'],
    Triton: ['compatibility', 'compatibility-names', 'start-lines'],
    Programs: [
      'services/cli/README.md',
      'services/kubectl/README.md',
      'services/step/README.md',
      'services/router/README.md',
      'operator/README.md',
      'charts/tutti/README.md',
      'images/README.md',
    ],
  },
  Operations: {
    Operations: ['operations', 'reliability', 'security', 'threat-model'],
    Runbooks: [/^docs\/runbooks\//],
  },
  Design: {
    Project: ['CHANGELOG.md', 'CONTRIBUTING.md', 'releases', 'SECURITY.md', 'bench/README.md'],
    Decisions: [/^docs\/decisions\//],
    Packages: [/^services\//],
    Tests: [/^(e2e|operator|scripts|model_repository|examples)\//],
  },
}

/** @returns {readonly { text: string, groups: readonly { text: string, pages: readonly string[] }[] }[]} the sections in their order. */
export function sections(root) {
  const pages = findPages(root)
  const entries = Object.values(SECTIONS).flatMap((groups) => Object.values(groups).flat())
  const named = new Set(entries.filter((entry) => typeof entry === 'string').map(pathOf))
  const expand = (entry) =>
    typeof entry === 'string'
      ? [pathOf(entry)]
      : pages.filter((page) => entry.test(page) && !named.has(page))
  return Object.entries(SECTIONS).map(([text, groups]) => ({
    text,
    groups: Object.entries(groups).map(([name, members]) => ({
      text: name,
      pages: members.flatMap(expand),
    })),
  }))
}

function pathOf(name) {
  return name.endsWith('.md') ? name : `docs/${name}.md`
}
