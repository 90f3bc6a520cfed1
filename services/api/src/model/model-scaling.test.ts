import t from 'tap'
import type { z } from 'zod'
import { ModelManifest, RouterManifest } from '../manifests.ts'
import { modelManifest } from '../testing/manifests.ts'

const router = (spec: object) => ({
  apiVersion: 'tutti.dev/v1alpha1',
  kind: 'Router',
  metadata: { name: 'default' },
  spec,
})

function problemOf(schema: z.ZodType, manifest: unknown): string {
  const [issue] = schema.safeParse(manifest).error?.issues ?? []
  return issue === undefined ? 'accepted' : `${issue.path.join('.')}: ${issue.message}`
}

await t.test('what may have no pods, and for how long it must be idle', (t) => {
  for (const [scaling, expected] of [
    [{ minReplicas: 0 }, /^accepted$/],
    [{ minReplicas: 0, maxReplicas: 3, idleAfter: '90s', target: 2 }, /^accepted$/],
    [{ minReplicas: 0, maxReplicas: 0 }, /^spec\.scaling\.maxReplicas: /],
    [{ minReplicas: -1 }, /^spec\.scaling\.minReplicas: /],
    [
      { provider: 'HPA', minReplicas: 0 },
      /^spec\.scaling\.minReplicas: got 0 with the provider HPA, want at least 1: an HPA measures/,
    ],
    [{ provider: 'None', minReplicas: 0 }, /takes `replicas` only/],
    [{ idleAfter: '1m' }, /^spec\.scaling\.idleAfter: want it with minReplicas 0 only/],
    [{ minReplicas: 1, idleAfter: '1m' }, /^spec\.scaling\.idleAfter: want it with minReplicas 0/],
    [{ minReplicas: 0, idleAfter: '1' }, /^spec\.scaling\.idleAfter: got '1', want a duration/],
    [{ minReplicas: 0, idleAfter: '0s' }, /^spec\.scaling\.idleAfter: got '0s', want a duration/],
  ] as const) {
    t.match(problemOf(ModelManifest, modelManifest('m', { scaling })), expected)
  }
  t.end()
})

await t.test('routers and their built-ins always have pods', (t) => {
  for (const [spec, expected] of [
    [
      { scaling: { minReplicas: 0 } },
      /^spec\.scaling\.minReplicas: got 0, want at least 1: without/,
    ],
    [{ scaling: { idleAfter: '1m' } }, /^spec\.scaling: Unrecognized key/],
    [
      { builtins: { scaling: { minReplicas: 0 } } },
      /^spec\.builtins\.scaling\.minReplicas: got 0, want at least 1: these pods are small/,
    ],
  ] as const) {
    t.match(problemOf(RouterManifest, router(spec)), expected)
  }
  t.end()
})
