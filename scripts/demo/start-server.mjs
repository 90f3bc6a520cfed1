import { portFlags, pythonFlags, REPOSITORY, startTutti } from './start-tutti.mjs'

/**
 * Starts `tutti serve` with the ensembles of systems; other models of the repository can be loaded by clients.
 *
 * @param {readonly { ensemble: string }[]} systems
 * @param {{ python?: string, keep: boolean }} o - `keep` takes the usual ports, which others can know.
 * @returns {Promise<{ servers: readonly object[], stop: () => Promise<void>, exited: Promise<unknown> }>}
 */
export async function startServer(systems, { python, keep }) {
  const { ready, stop, exited } = await startTutti([
    'serve',
    REPOSITORY,
    '--model-control-mode=explicit',
    ...systems.map(({ ensemble }) => `--load-model=${ensemble}`),
    ...pythonFlags(python),
    ...portFlags(keep ? 8000 : undefined),
  ])
  return { servers: [ready], stop, exited }
}
