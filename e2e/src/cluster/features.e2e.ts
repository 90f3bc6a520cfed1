import t from 'tap'
import { adder, makeAdders, SPACE } from './adders.ts'
import { openCacheFolder, showCache } from './cache-shows.ts'
import { createClaim } from './claim.ts'
import { showDevices } from './device-shows.ts'
import { createEdge } from './edge.ts'
import { showFirstHosts, showFirstRequests } from './first-requests.ts'
import { applyExposed, beginRest, HOSTS, showGateway, showIngress } from './ingress-shows.ts'
import { apply, createNamespace, kubectl, withoutTuttiImages } from './kubectl.ts'
import { install, removeAfter } from './release.ts'
import { sideBySide } from './side-by-side.ts'
import { showStatus } from './status-shows.ts'
import { showStorage } from './storage-shows.ts'

t.setTimeout(1_800_000)

const DIAL_OUTSIDE = `
require('node:net').connect(80, '198.51.100.1').on('error', ({ code }) => console.log(code))`

await t.test('Models and Ensembles of one release', { skip: withoutTuttiImages() }, async (t) => {
  const folder = await makeAdders(t)
  const edge = await createEdge(t, HOSTS)
  removeAfter(t)
  await createNamespace(t, SPACE)
  await createClaim(t, SPACE, folder)
  await edge.createSecret(SPACE)
  await install(['--set=router.console=Show', ...(await openCacheFolder(t))])
  await apply(adder('first', 'plus-one'), adder('second', 'plus-three'))
  await applyExposed()
  const ready = ['--for=condition=Ready', '--timeout=300s', '--all', `--namespace=${SPACE}`]
  await kubectl('wait', 'models,ensembles', ...ready)

  await t.test('no packet leaves the machine', async (t) => {
    const router = ['deployment/tutti-router', `--namespace=${SPACE}`]
    const said = await kubectl('exec', ...router, '--', 'node', '--eval', DIAL_OUTSIDE)
    t.match(said, /^E(?:HOST|NET)UNREACH/)
  })

  const goOn = await beginRest(t, edge)
  await t.test('Ensembles behind an Ingress', (t) => showIngress(t, edge))
  await t.test('an Ensemble behind a Gateway', (t) => showGateway(t, edge))
  // Not beside the others: while they have the processor, heartbeats come too late, and replicas count as gone.
  await t.test('the first requests to Models and Ensembles that are Ready', showFirstRequests)
  await t.test('the first calls to hosts of Ensembles that are Ready', showFirstHosts)
  await sideBySide(t, {
    'files of Models': (t) => showStorage(t, folder),
    'a cache of downloads': (t) => showCache(t, folder),
    'devices of Models': showDevices,
    'what is broken, and why': (t) => showStatus(t, folder),
  })
  await t.test('a stream that rested for more than a minute goes on', goOn)
})
