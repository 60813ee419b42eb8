"""GNU Radio flowgraphs: PHYs, front ends, recording and replay, and the virtual USRP. Read first: README.md here."""
