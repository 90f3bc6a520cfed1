import { mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { findBucketServers } from '../setup/bucket-servers.mjs'
import { findChromium } from '../setup/chromium.mjs'
import { findFaketime } from '../setup/faketime.mjs'
import { findGitops } from '../setup/gitops.mjs'
import { findKubeBinaries } from '../setup/kube-binaries.mjs'
import { findKubeScore } from '../setup/kube-score.mjs'
import { findNamespaces } from '../setup/namespaces.mjs'
import { ensureNatsServer } from '../setup/nats-server.mjs'
import { findOcr } from '../setup/ocr.mjs'
import { findOpenvino } from '../setup/openvino.mjs'
import { findPerfAnalyzer } from '../setup/perf-analyzer.mjs'
import { findPrometheus } from '../setup/prometheus.mjs'
import { ensurePython } from '../setup/python.mjs'
import { findRedisServer } from '../setup/redis.mjs'
import { findCosign, findReleasePrograms } from '../setup/release-programs.mjs'
import { findShells } from '../setup/shells.mjs'
import { findTorch } from '../setup/torch.mjs'
import { findTriton } from '../setup/triton.mjs'

/**
 * The needs that a test file may have beside Node, as its first line declares it: `// needs: nats, python`. `provide` finds, installs or
 * builds it and returns the environment that tells tests where it is, or why it is missing. `names` are the variables that
 * a file without the declaration gets with a value that cannot work and says so.
 */
export const NEEDS = {
  nats: {
    names: ['TUTTI_NATS_SERVER'],
    provide: async () => ({ TUTTI_NATS_SERVER: await ensureNatsServer() }),
  },
  /** etcd, kube-apiserver and the other programs of Kubernetes, and helm. */
  apiserver: {
    names: ['TUTTI_KUBE_BIN', 'KUBEBUILDER_ASSETS'],
    provide: () => findKubeBinaries(),
  },
  'kube-score': {
    names: ['TUTTI_KUBE_SCORE'],
    provide: () => findKubeScore(),
  },
  /** How Argo CD, Flux and kstatus see objects. */
  gitops: {
    names: ['TUTTI_GITOPS'],
    provide: () => findGitops(),
  },
  /** Python 3 with NumPy and NVIDIA's client. */
  python: {
    names: ['TUTTI_TEST_PYTHON'],
    provide: async (root) => ({
      TUTTI_TEST_PYTHON: await ensurePython(join(root, 'scripts', 'test-requirements.txt')),
    }),
  },
  /** The networks of the example read-text, and a Python with the program that it is compared with. */
  ocr: {
    names: ['TUTTI_OCR_PYTHON', 'TUTTI_OCR_NETWORKS'],
    provide: (root) => findOcr(root),
  },
  torch: {
    names: ['TUTTI_TEST_TORCH_PYTHON'],
    provide: () => findTorch(),
  },
  /** Namespaces of its own, for its network, its mounts and its processes. */
  netns: {
    names: ['TUTTI_NAMESPACES'],
    provide: () => findNamespaces(),
  },
  redis: {
    names: ['TUTTI_REDIS_SERVER'],
    provide: () => findRedisServer(),
  },
  /** A Prometheus with its promtool, for dashboards and alerts. */
  prometheus: {
    names: ['TUTTI_PROMETHEUS'],
    provide: () => findPrometheus(),
  },
  /** A browser, for the console. */
  chromium: {
    names: ['TUTTI_CHROMIUM'],
    provide: () => findChromium(),
  },
  /** zsh and fish, for completion. */
  shells: {
    names: ['TUTTI_ZSH', 'TUTTI_FISH'],
    provide: () => findShells(),
  },
  /** libfaketime. */
  faketime: {
    names: ['TUTTI_FAKETIME'],
    provide: () => findFaketime(),
  },
  /** A real Triton 2.51. */
  triton: {
    names: ['TUTTI_TRITON'],
    provide: (root) => findTriton(join(root, 'scripts', 'triton-requirements.txt')),
  },
  /** ONNX Runtime's libraries with OpenVINO. */
  openvino: {
    names: ['TUTTI_OPENVINO'],
    provide: (root) => findOpenvino(join(root, 'scripts', 'openvino-requirements.txt')),
  },
  /** Servers that speak as Google Cloud Storage and Azure Blob Storage do. */
  buckets: {
    names: ['TUTTI_FAKE_GCS', 'TUTTI_AZURITE'],
    provide: () => findBucketServers(),
  },
  /** A registry of images, what pushes to it, and what checks workflows. */
  registry: {
    names: ['TUTTI_REGISTRY', 'TUTTI_ORAS', 'TUTTI_ACTIONLINT'],
    provide: () => findReleasePrograms(),
  },
  cosign: {
    names: ['TUTTI_COSIGN'],
    provide: () => findCosign(),
  },
  /** NVIDIA's perf_analyzer. */
  'perf-analyzer': {
    names: ['TUTTI_PERF_ANALYZER'],
    provide: (root) => findPerfAnalyzer(join(root, 'scripts', 'perf-analyzer-requirements.txt')),
  },
}

/** @returns {(needs: readonly string[]) => Promise<NodeJS.ProcessEnv>} sets up each need once, and gives a file's environment. */
export function createProvider(root, base) {
  const provided = new Map()
  const provide = (need) => {
    if (!provided.has(need)) provided.set(need, NEEDS[need].provide(root))
    return provided.get(need)
  }
  return async (needs) => {
    const values = await Promise.all(needs.map(provide))
    return Object.assign({ ...base }, undeclared(root, needs, base), ...values)
  }
}

/** Values that make the use of an undeclared need fail, with a message that names the mending. */
function undeclared(root, needs, base) {
  const env = {}
  for (const [need, { names }] of Object.entries(NEEDS)) {
    if (needs.includes(need)) continue
    for (const name of names)
      env[name] = `/undeclared: add ${need} to the "// needs:" line of the test`
  }
  if (!needs.includes('python') && !needs.includes('torch')) {
    env.PATH = `${refusingPython(root)}${delimiter}${base.PATH ?? ''}`
  }
  return env
}

/** A folder with a `python3` that refuses to run. */
function refusingPython(root) {
  const folder = join(root, '.tap', 'undeclared')
  mkdirSync(folder, { recursive: true })
  const text =
    '#!/bin/sh\necho \'python3: add python to the "// needs:" line of the test\' >&2\nexit 1\n'
  writeFileSync(join(folder, 'python3'), text, { mode: 0o755 })
  return folder
}
