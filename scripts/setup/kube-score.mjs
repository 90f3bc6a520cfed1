import { orMissing } from './failure.mjs'
import { ensureGoProgram } from './go-program.mjs'

const KUBE_SCORE = {
  name: 'kube-score',
  package: 'github.com/zegl/kube-score/cmd/kube-score',
  version: '1.20.0',
}

/** `TUTTI_KUBE_SCORE`, the program that judges manifests, or `TUTTI_KUBE_SCORE_MISSING`, why there is none. */
export function findKubeScore({ env = process.env, say = console.error } = {}) {
  return orMissing(
    'TUTTI_KUBE_SCORE',
    async () => env.TUTTI_KUBE_SCORE || (await ensureGoProgram(KUBE_SCORE, { env, say })),
  )
}
