import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vite'

// The page as the local server serves it: committed, so that nobody needs Node to use it.
export default defineConfig({
  plugins: [svelte()],
  base: './',
  build: {
    outDir: process.env.REGARD_PAGE ?? '../src/regard/inspection/page',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 400,
  },
  server: { proxy: { '/api': 'http://127.0.0.1:8017' } },
})
