// Serves the model of `helm test`, as an archive, to the pods that fetch it.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'

const archive = readFileSync('/test/add-one.tar')
createServer((request, response) => {
  const isThere = request.url === '/add-one.tar'
  response.writeHead(isThere ? 200 : 404, { 'content-type': 'application/x-tar' })
  response.end(isThere && request.method !== 'HEAD' ? archive : undefined)
}).listen(8080)
process.on('SIGTERM', () => process.exit(0))
