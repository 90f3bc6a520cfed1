import t from 'tap'
import { cacheFolder } from './cache-folder.ts'

await t.test('the cache is where XDG_CACHE_HOME says, if that is an absolute path', (t) => {
  const HOME = '/home/ada'
  t.equal(cacheFolder({ env: { HOME, XDG_CACHE_HOME: '/cache' } }), '/cache/tutti')
  for (const cache of [undefined, '', 'cache', './cache']) {
    const env = { HOME, ...(cache !== undefined && { XDG_CACHE_HOME: cache }) }
    t.equal(cacheFolder({ env }), '/home/ada/.cache/tutti', String(cache))
  }
  t.end()
})
