// needs: nats, apiserver, python
import t from 'tap'
import { startCluster, withoutCluster } from '../kubernetes/cluster.ts'
import { openTwoRouters, showFirstRequests } from '../kubernetes/first-requests.ts'
import { tempFolder } from '../temp-repository.ts'

t.setTimeout(0)

const TIMES = 100

await t.test(
  `the first requests to ${TIMES} Models and ${TIMES} Ensembles, each when it is Ready`,
  { skip: withoutCluster() },
  async (test) => {
    const place = { cluster: await startCluster(test), namespace: 'team' }
    await openTwoRouters(place, await tempFolder(test))
    await showFirstRequests(test, place, TIMES)
  },
)
