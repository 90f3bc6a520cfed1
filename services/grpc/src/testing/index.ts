export { inferObject, openTestServer, type TestServer } from './test-server.ts'
