export { openRaw } from './raw-http.ts'
export { createRestBackend, type RestBackend, response } from './rest-backend.ts'
