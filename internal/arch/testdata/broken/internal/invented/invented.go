package invented
